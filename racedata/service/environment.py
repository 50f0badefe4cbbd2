"""What the worker and the application agree on beyond WSGI: bodies, and a key in the environment.

A body, which the application (app.py) returns to the worker (worker.py), is one of these:

- An iterator: the answer is slow. It is made, and its headers are set, when the worker iterates
  over it. The worker lets a thread do so.
- An object with `send_to` and `size`: a file (download.py). The worker sends the headers first.
  Then, whenever the socket can take more, it calls `send_to(socket)`, which sends the next bytes
  and returns whether these were the last. It raises OSError if the file cannot be sent any more;
  then the connection is closed. `size` is the number of bytes, for the log.
- Any other iterable of bytes: the answer is ready.
"""

# From worker.py to answers.py: whether too many slow answers already wait.
IS_BUSY = "racedata.is_busy"
