"""The HTML pages: templates/, a module per page that collects its facts, and what answers requests.

Facts are answers of the endpoints (ask.py), objects of the catalogue, and what the queries in
queries.sql find. All HTML is in templates/.
"""
