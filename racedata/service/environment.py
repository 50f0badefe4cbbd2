"""What the worker and the application agree on beyond WSGI: bodies, and keys in the environment.

A body, which the application (app.py) returns to the worker (worker.py), is one of these:

- An iterator: the answer is slow. It is made, and its headers are set, when the worker iterates
  over it. The worker lets a thread do so.
- An object with `send_to` and `size`: a file (download.py). The worker sends the headers first.
  Then, whenever the socket can take more, it calls `send_to(socket)`, which sends the next bytes
  and returns whether these were the last. It raises OSError if the file cannot be sent any more;
  then the connection is closed. `size` is the number of bytes, for the log.
- Any other iterable of bytes: the answer is ready.

A request that looks slow may pass through all middleware and its resource twice:

1. At once, with ONLY_CACHED. Errors, 304s and cached answers are sent. If the answer must be made,
   CachedAnswers sets MUST_WAIT, or raises a 503 if IS_BUSY is set. With MUST_WAIT, all that this
   pass has made is dropped, and the body is an iterator.
2. When the worker iterates over the body, without ONLY_CACHED. This pass makes the answer.

So middleware must not count or change anything a second time. For RateLimits, COUNTED says that it
has counted the request.
"""

# From worker.py to answers.py: whether too many slow answers already wait.
IS_BUSY = "racedata.is_busy"
# From app.py to answers.py: an answer that is not cached must wait.
ONLY_CACHED = "racedata.only_cached"
# From answers.py to app.py: the answer must wait.
MUST_WAIT = "racedata.must_wait"
# The headers of the rate limits, once they have counted the request.
COUNTED = "racedata.counted"
