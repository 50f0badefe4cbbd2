"""Rate limits: the token bucket, the stores that hold buckets, which client sent a request, and the
middleware.
"""
