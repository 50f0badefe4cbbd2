"""The keys that the service adds to the WSGI environment of a request."""

# From worker.py to answers.py: whether too many slow answers already wait.
IS_BUSY = "racedata.is_busy"
# From app.py to answers.py: an answer that is not cached must wait.
ONLY_CACHED = "racedata.only_cached"
# From answers.py to app.py: the answer must wait.
MUST_WAIT = "racedata.must_wait"
# The headers of the rate limits, once they have counted the request.
COUNTED = "racedata.counted"
