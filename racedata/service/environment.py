"""What the worker and the application agree on beyond WSGI: bodies, slow answers, and keys in the
environment.

The application gives the worker a body. A list is an answer that is ready. A generator is a slow
answer: it is made, and its headers are set, when the worker iterates over it. Anything else has
many pieces, such as a file (download.py): each is read when the client can take it.

Calendars, HTML pages and answers with a `limit` above 100 are slow. Cached answers, errors and
redirects are not. The calls for a slow answer, in order:

    worker.answer → app.App → Falcon → caching.respond: leaves it UNFINISHED, or 503 if IS_BUSY
    worker.answer ← app.App, after all middleware: the generator app.finished
    worker.in_thread → worker.complete → app.finished → `finish` of caching.respond
    worker.handle_events → worker.in_thread → worker.send, when the thread is done

One thread of each worker makes the slow answers, one after the other, while other clients are
served. These wait at most for one SQL statement of a slow answer, because all share the connection
(snapshot.py): for 27 ms, with full data. A worker IS_BUSY while a hundred wait in it. If a client
closes its connection, or only its sending side, while it waits, worker.in_thread drops its answer.
"""

# From caching.py to app.py: what makes a slow answer later, as `(req, resp, finish)`.
UNFINISHED = "racedata.unfinished"
# From worker.py to caching.py: whether too many slow answers already wait.
IS_BUSY = "racedata.is_busy"
