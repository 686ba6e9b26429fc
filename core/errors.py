"""The error tree. Each error has a sentence for the log (the exception's text) and one for the reader (`reader`).

PenstockError
+- BadInput            the person can mend it: empty question, unreadable file, ambiguous name
|  +- BadFile          this file; never retried
|  +- BadQuestion
|  +- NotFound
|  +- Ambiguous
+- Forbidden           this person may not do that
+- ConfigurationError  a setting is missing or wrong; names it
|  +- IndexMismatch    the index was built by another embedding model
+- Unavailable         a server or a model does not answer; may be tried again
   +- ModelUnavailable
   +- IndexUnavailable
"""

from typing import ClassVar


class PenstockError(Exception):
    """Something went wrong inside Penstock."""

    code: ClassVar[str] = "internal_error"
    retryable: ClassVar[bool] = False

    def __init__(self, log: str, *, reader: str | None = None, code: str | None = None) -> None:
        super().__init__(log)
        self.reader = reader or log
        self.kind = code or self.code

    def __reduce__(self) -> tuple[object, ...]:
        """Survives a durable job's serialiser with both sentences."""
        return (_rebuild, (type(self), str(self), self.reader, self.kind))


def _rebuild(cls: type[PenstockError], log: str, reader: str, code: str) -> PenstockError:
    return cls(log, reader=reader, code=code)


class BadInput(PenstockError):
    """The person can mend it."""

    code = "bad_input"


class BadFile(BadInput):
    """This file cannot be read as it is; trying again will not help."""

    code = "bad_file"


class BadQuestion(BadInput):
    """This question cannot be answered as it is put."""

    code = "bad_question"


class NotFound(BadInput):
    """Nothing of that name or id."""

    code = "not_found"


class Ambiguous(BadInput):
    """The name fits several things; the reader's sentence lists their ids."""

    code = "ambiguous"


class Forbidden(PenstockError):
    """This person may not do that."""

    code = "forbidden"


class ConfigurationError(PenstockError):
    """A setting is missing or wrong; the sentence names it."""

    code = "configuration"


class IndexMismatch(ConfigurationError):
    """The index was built by another embedding model; `penstock reindex` rebuilds it."""

    code = "index_mismatch"


class Unavailable(PenstockError):
    """A server does not answer; the same call may work later."""

    code = "unavailable"
    retryable = True


class ModelUnavailable(Unavailable):
    """The model server is down, or the model is not pulled."""

    code = "model_unavailable"


class IndexUnavailable(Unavailable):
    """The index cannot be reached, is read-only or full."""

    code = "index_unavailable"
