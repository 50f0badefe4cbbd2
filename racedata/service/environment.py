"""What the worker and the application agree on beyond WSGI: bodies, slow answers, and keys in the
environment.

A body, which the application (app.py) returns to the worker (worker.py), is one of these:

- An iterator: the answer is slow. It is made, and its headers are set, when the worker iterates
  over it.
- An object with `send_to` and `size`: a file (download.py). The worker sends the headers first.
  Then, whenever the socket can take more, it calls `send_to(socket)`, which sends the next bytes
  and returns whether these were the last. It raises OSError if the file cannot be sent any more;
  then the connection is closed. `size` is the number of bytes, for the log.
- Any other iterable of bytes: the answer is ready.

An answer that is not cached is slow if it has more than 100 records, or is a calendar or an HTML
page:

1. It passes all middleware UNFINISHED, and the application returns an iterator.
2. One thread of each worker makes the slow answers, one after the other, while other clients are
   served. These wait at most for one SQL statement of a slow answer, because all share the
   connection (snapshot.py): for 72 ms, with full data.
3. While a hundred are waiting in a worker, it sets IS_BUSY, and further ones are refused (503).
4. If a client closes its connection, or only its sending side, while it waits for a slow answer,
   the answer is dropped.
"""

# From caching.py to app.py: what makes a slow answer later, as `(req, resp, finish)`.
UNFINISHED = "racedata.unfinished"
# From worker.py to caching.py: whether too many slow answers already wait.
IS_BUSY = "racedata.is_busy"
