"""The HTML pages: templates/, a module per page that collects its facts, and what answers requests.

Facts are answers of the endpoints (ask.py). All HTML is in templates/, and all Python is here.
"""
