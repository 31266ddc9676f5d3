"""The prices of a shop, as columns."""

from pyspark.sql import Column
from pyspark.sql import functions as f


def discounted(amount: Column) -> Column:
    """An amount without a tenth of it, rounded up."""
    return amount - f.floor(amount / 10)
