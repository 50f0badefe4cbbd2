"""Rate limits: the token bucket, the stores that hold the buckets, what identifies a client, and the middleware."""
