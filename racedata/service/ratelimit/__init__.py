"""Rate limits: the token bucket, stores of buckets, which client asks, and the middleware."""
