"""Order of arrival and options, which steps with verbs have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from gpu_windows.datastream.steps import LastStep, R
from gpu_windows.vocabulary.options import Options, change_options

if TYPE_CHECKING:
    from gpu_windows.annotations import Column


@dataclass(frozen=True, kw_only=True)
class ConfigurableStep(LastStep[R]):
    """A step with verbs, an order of arrival and options.

    Parameters
    ----------
    order : tuple of str or Column
        Columns of the order of arrival.
    options_ : Options
    """

    order: tuple[str | Column, ...] = ()
    options_: Options = Options()  # noqa: RUF009 - frozen

    def arrival_order(self, *columns: str | Column) -> Self:
        """Name the columns that give the order of arrival, which a shuffle in Spark loses.

        Ignored on an Arrow table, whose order is its order of arrival.

        Parameters
        ----------
        *columns : str or Column
            Most significant first. Of two inputs: names of columns that both have.
        """
        return replace(self, order=columns)

    def options(self, **options: Any) -> Self:
        """Change how the query runs, not what it gives: see `Options`.

        Parameters
        ----------
        **options
            Fields of `Options`, such as ``device="cpu"``.
        """
        return replace(self, options_=change_options(self.options_, options))
