"""A text of the Hugging Face hub, or any other that the package datasets can load."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import CorpusError

PREFIX = "datasets:"


@dataclass(frozen=True)
class DatasetText:
    """Which column of which dataset is a text. Its rows, each of which is a line or ends in one, stand in their order.

    A part without a split of its own is a twentieth of the training split's rows, from its end.

    Attributes:
        path: the dataset's name on the hub, "owner/name", or a local folder of text, JSON, CSV or Parquet files.
        config: which of its variants, where it has several.
        column: the one with the text.
        train: the split of the training part.
        validation: the split of the validation part; None for "validation" where there is one.
        test: the split of the test part; None for "test" where there is one.
        revision: a branch, tag or commit on the hub.

    Raises:
        CorpusError: a name without a dataset in it. Of `load_corpus`: the package datasets is not installed; no such
            dataset, variant, split or column; a column that holds no text; too few rows.
        CheckpointNotFoundError: of `load_corpus`: the hub cannot be reached, refuses, or breaks off.

    Example:
        >>> from posembed.data import DatasetText
        >>> text = DatasetText.parse("datasets:Salesforce/wikitext:wikitext-2-raw-v1")
        >>> text.path, text.config, text.column
        ('Salesforce/wikitext', 'wikitext-2-raw-v1', 'text')
    """

    path: str
    config: str | None = None
    column: str = "text"
    train: str = "train"
    validation: str | None = None
    test: str | None = None
    revision: str | None = None

    @classmethod
    def parse(cls, name: str) -> DatasetText:
        """Read "datasets:NAME", "datasets:NAME:CONFIG" or "datasets:NAME:CONFIG:COLUMN"; CONFIG may be empty.

        Example:
            >>> from posembed.data import DatasetText
            >>> DatasetText.parse("datasets:owner/name::content").column
            'content'
        """
        path, config, column = (*name.removeprefix(PREFIX).split(":", 2), "", "")[:3]
        if not path or not name.startswith(PREFIX):
            raise CorpusError(
                f"{name!r} names no dataset; write datasets:NAME, datasets:NAME:CONFIG or datasets:NAME:CONFIG:COLUMN"
            )
        return cls(path, config or None, column or "text")

    @property
    def name(self) -> str:
        """What `parse` reads, without splits and revision."""
        return f"{PREFIX}{self.path}:{self.config or ''}:{self.column}".removesuffix(":text").rstrip(":")
