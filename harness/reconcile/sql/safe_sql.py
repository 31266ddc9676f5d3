"""Rejects SQL of documents and options that does more than compute values.

Spark's own parser parses the text, and every part of the tree must be on a list. The text is one
query over the given relations, or one expression over the fields of a record. Commands, other
relations (Spark also reads files and catalogues as relations), hints, placeholders, functions that
are not in `safe_sql.txt`, what depends on the order of the rows (`row_order.py`), and conditions
that a null makes unknown (`negated_in.py`) are rejected before Spark analyses or executes anything.

Only the memory of the session bounds the resources that a text uses; see SECURITY.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from streamquake.harness.reconcile.identity_join import quote_name
from streamquake.harness.reconcile.sql.negated_in import reject_negated_in
from streamquake.harness.reconcile.sql.present_times import (
    is_word_of_present,
    present_time_message,
    present_within,
)
from streamquake.harness.reconcile.sql.row_order import reject_order_of_rows
from streamquake.harness.reconcile.sql.safe_lists import (
    ALLOWED,
    functions,
    generators,
    names_of_functions,
    parts_of_expressions,
    parts_of_queries,
)
from streamquake.harness.reconcile.sql.sql_tree import (
    MisleadingSql,
    SqlNode,
    UnsafeSql,
    elements,
    nodes,
)
from streamquake.topologies.problems import BadInput, Problem, bad_input, did_you_mean

SENT = frozenset({"sent"})
MAX_CHARACTERS = 100_000
"""Longest text, in characters."""
MAX_COUNT = 1_000_000
"""Largest literal for the number of elements that a function creates."""
COUNTED = {
    "repeat": 1,
    "space": 0,
    "lpad": 1,
    "rpad": 1,
    "array_repeat": 1,
    "sequence": 1,
    "stack": 0,
    "array_insert": 1,
    "format_number": 1,
}
"""Functions whose result has a requested size -> the index of the argument for the size."""
UNCOUNTED = {"sequence": ("date", "timestamp", "interval"), "format_number": ("string",)}
"""Functions -> the types of further literals in the place of a size."""
NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")
VARIABLES = ("UnresolvedAttribute", "UnresolvedNamedLambdaVariable", "UnresolvedStar")
"""The parts of a tree whose values differ between records."""
STARS = ("UnresolvedStar", "UnresolvedStarExceptOrReplace")
"""The parts of a tree that stand for all columns."""
MOMENTS = ("date", "timestamp", "timestamp_ntz")
"""Types whose literals may depend on the present time, such as 'today' or a time without a day."""
_WITH_A_YEAR = re.compile(r"\s*(?:[+-]?\d{4}|epoch\b)", re.IGNORECASE)


class MisleadingInput(BadInput):
    """SQL that only computes values, but other ones than its reader expects."""


def safe_query(
    spark: SparkSession, text: str, place: str, relations: frozenset[str] = SENT
) -> DataFrame:
    """The rows of one query over some relations, which are views of the session.

    Raises BadInput for any other text, before Spark executes it; AnalysisException for a query that
    does not fit the relations.
    """
    reject_unsafe_query(spark, text, place, relations)
    try:
        rows = spark.sql(text)
    except Py4JJavaError as error:
        raise bad_input(place, f"Spark cannot read this query: {_first_line(error)}") from error
    present = present_within(spark, rows._jdf.queryExecution().analyzed())
    if present is not None:
        raise bad_input(place, present_time_message(present))
    return rows


def reject_unsafe_query(
    spark: SparkSession, text: str, place: str, relations: frozenset[str] = SENT
) -> None:
    """Raise BadInput for a text that is not exactly one query over these relations."""
    _query_tree(spark, text, place, relations)


def relations_read(
    spark: SparkSession, text: str, place: str, relations: frozenset[str]
) -> frozenset[str]:
    """Those of the relations that a query reads, in small letters. Raises BadInput for a text that
    is not exactly one query over these relations, or has a common table expression of such a name:
    what it reads by that name would not be known."""
    tree = _query_tree(spark, text, place, relations)
    if hidden := sorted(relations & _own_relations_within(nodes(spark, tree))):
        message = f"`{hidden[0]}` is a relation of the run; rename this common table expression"
        raise bad_input(place, message)
    read = (
        str(elements(node.tree.multipartIdentifier())[-1]).lower()
        for node in nodes(spark, tree)
        if node.class_name == "UnresolvedRelation"
    )
    return relations.intersection(read)


def _query_tree(spark: SparkSession, text: str, place: str, relations: frozenset[str]) -> Any:
    """The tree of one query over these relations. Raises BadInput for another text."""
    _reject_long(text, place)
    try:
        tree = _parse(_parser(spark).parsePlan, text, place)
    except ParseException as error:
        message = next(line for line in str(error).splitlines() if line.strip())
        raise bad_input(
            place, f"expected one query of Spark SQL, got another text: {message}"
        ) from error
    _reject(spark, tree, place, relations)
    return tree


def safe_expression(spark: SparkSession, text: str, place: str) -> Any:
    """The tree of one expression over the fields of a record.

    Raises BadInput where it does more than compute, ParseException where it is no expression.
    """
    _reject_long(text, place)
    tree = _parse(_parser(spark).parseExpression, text, place)
    _reject(spark, tree, place, None)
    return tree


def _parser(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().sqlParser()


def _parse(parse: Callable[[str], Any], text: str, place: str) -> Any:
    """The tree of a text. Raises ParseException, and BadInput where the nesting is too deep for the
    recursive parser."""
    try:
        return parse(text)
    except Py4JJavaError as error:
        if "StackOverflowError" not in str(error):
            raise
        raise bad_input(place, "expected SQL of fewer levels, one within the other") from error


def _first_line(error: Py4JJavaError) -> str:
    return str(error.java_exception.getMessage() or error.java_exception).partition("\n")[0]


def _reject_long(text: str, place: str) -> None:
    if len(text) > MAX_CHARACTERS:
        message = f"expected SQL of at most {MAX_CHARACTERS:,} characters, got {len(text):,}"
        raise bad_input(place, message)


def _reject(spark: SparkSession, tree: Any, place: str, given: frozenset[str] | None) -> None:
    """Reject each part that is on no list. `given` are the relations of a query; None for an
    expression. Raises BadInput."""
    allowed = parts_of_expressions() if given is None else parts_of_queries()
    try:
        all_nodes = list(nodes(spark, tree))
        query_relations = _own_relations_within(all_nodes)
        _reject_hidden_relations(spark, query_relations - (given or frozenset()))
        allowed_relations = (given or frozenset()) | query_relations
        for node in all_nodes:
            if node.qualified_name not in allowed:
                raise UnsafeSql(_not_allowed(node, is_query=given is not None))
            _reject_node(spark, node, allowed_relations, is_query=given is not None)
        for node in all_nodes:  # last: a record with SQL that only misleads is judged
            reject_order_of_rows(spark, node)
            reject_negated_in(node)
    except MisleadingSql as misleading:
        raise MisleadingInput([Problem(file=place, message=str(misleading))]) from None
    except UnsafeSql as unsafe:
        raise bad_input(place, str(unsafe)) from None


def _not_allowed(node: SqlNode, *, is_query: bool) -> str:
    if node.class_name in STARS:  # only the fields that an expression names are read
        return "expected an expression that names its fields, got one with `*`; name each field"
    expected = "one query" if is_query else "an expression over one record"
    return f"expected {expected}, got SQL with {node.class_name}, not allowed here"


def _own_relations_within(all_nodes: Iterable[SqlNode]) -> frozenset[str]:
    return frozenset[str]().union(*map(_own_relations, all_nodes))


def _own_relations(node: SqlNode) -> frozenset[str]:
    """The names of the common table expressions of a query."""
    if node.class_name != "UnresolvedWith":
        return frozenset()
    return frozenset(str(common._1()).lower() for common in elements(node.tree.cteRelations()))


def _reject_hidden_relations(spark: SparkSession, names: frozenset[str]) -> None:
    """Reject a common table expression with the name of a relation of the session: outside of its
    scope, the name would be that relation."""
    for name in sorted(names):
        if spark.catalog.tableExists(quote_name(name)):
            raise UnsafeSql(
                f"`{name}` is also a relation of the session; rename this common table expression"
            )


def _reject_node(
    spark: SparkSession, node: SqlNode, relations: frozenset[str], *, is_query: bool
) -> None:
    match node.class_name:
        case "UnresolvedFunction":
            name = _reject_function(elements(node.tree.nameParts()))
            _reject_large(spark, name, elements(node.tree.arguments()))
        case "UnresolvedGenerator":
            name = _reject_generator(str(node.tree.name().unquotedString()))
            _reject_large(spark, name, elements(node.tree.children()))
        case "UnresolvedTableValuedFunction":
            name = _reject_generator(".".join(map(str, elements(node.tree.name()))))
            _reject_large(spark, name, elements(node.tree.functionArgs()))
        case "UnresolvedRelation":
            _reject_relation(node.tree, relations)
        case "Literal":
            _reject_present(str(node.tree.dataType().simpleString()), node.tree)
        case "UnresolvedWith" if node.tree.allowRecursion():
            raise UnsafeSql("expected a query that ends, got WITH RECURSIVE")
        case "UnresolvedAttribute" if is_query:
            _reject_name(".".join(map(str, elements(node.tree.nameParts()))))


def _reject_name(name: str) -> None:
    if name.lower() in names_of_functions():
        message = f"Spark reads `{name}` as a function, not allowed here; rename the column"
        raise UnsafeSql(message)


def _reject_function(parts: list[Any]) -> str:
    """The name of a function. Raises UnsafeSql for one that is not allowed."""
    name = ".".join(map(str, parts)).lower()
    reasons = functions()
    if name not in reasons:
        allowed_names = (function_name for function_name, why in reasons.items() if why == ALLOWED)
        hint = did_you_mean(name, allowed_names).partition(" known:")[0].rstrip(";")
        raise UnsafeSql(f"`{name}` is no function that is allowed here{hint}")
    if reasons[name] != ALLOWED:
        raise UnsafeSql(f"the function `{name}` is not allowed here: {reasons[name]}")
    return name


def _reject_large(spark: SparkSession, name: str, arguments: list[Any]) -> None:
    """Reject a constant size unless it is a literal that is not larger than any record. The size
    that a column gives is not known yet."""
    if name not in COUNTED or COUNTED[name] >= len(arguments):
        return
    # The number of elements of a sequence is that of the steps between its ends.
    counted = arguments if name == "sequence" else [arguments[COUNTED[name]]]
    numbers = [_literal_number(spark, name, argument) for argument in counted]
    count = _steps(numbers) if name == "sequence" else numbers[0]
    if count is not None and abs(count) > MAX_COUNT:
        raise UnsafeSql(f"`{name}` may create at most {MAX_COUNT:,} elements, got {count:,.0f}")


def _steps(numbers: list[float | None]) -> float | None:
    """The number of steps of a sequence, from its arguments; None where an end is not known. A step
    that is not known may be one."""
    start, stop, step = (*numbers, 1)[:3]
    return None if start is None or stop is None else (stop - start) / (step or 1)


def _literal_number(spark: SparkSession, name: str, argument: Any) -> float | None:
    """The number of a literal. None for what is no number of elements: a time in a sequence, a
    format, or a value that depends on a column. Raises UnsafeSql for any other constant."""
    parts = list(nodes(spark, argument))
    if any(part.class_name in VARIABLES for part in parts):
        return None
    if parts[0].class_name == "Literal":
        kind = str(argument.dataType().simpleString())
        if kind.partition("(")[0] in NUMBERS:
            return float(str(argument.value()))
        if kind.startswith(UNCOUNTED.get(name, ())):
            return None
    raise UnsafeSql(
        f"`{name}` may create at most {MAX_COUNT:,} elements: expected a number as a literal, got "
        "a constant of another form"
    )


def _reject_present(type_name: str, literal: Any) -> None:
    """Reject a literal of the present time: `DATE 'today'`, `TIMESTAMP '12:30'`, and the text
    'now', which Spark reads as the time where it expects one."""
    if type_name in MOMENTS:
        written = _text_within(str(_source(literal)))
        is_present = not _WITH_A_YEAR.match(written)
    else:
        written = str(literal.value()) if type_name.startswith("string") else ""
        is_present = is_word_of_present(written)
    if is_present:
        raise UnsafeSql(present_time_message(written))


def _source(literal: Any) -> str:
    """The source text of a literal; empty where Spark does not provide it."""
    origin = literal.origin()
    if not (origin.sqlText().isDefined() and origin.stopIndex().isDefined()):
        return ""
    return str(origin.sqlText().get())[origin.startIndex().get() : origin.stopIndex().get() + 1]


def _text_within(written: str) -> str:
    """The text between the last quotes of a literal."""
    return written[written.rfind(written[-1], 0, -1) + 1 : -1] if written else ""


def _reject_generator(name: str) -> str:
    """The name of a generator in small letters. Raises UnsafeSql for one that is not allowed."""
    if name.lower() not in generators():
        known = ", ".join(sorted(generators()))
        raise UnsafeSql(f"`{name}` may not generate rows here; allowed: {known}")
    return name.lower()


def _reject_relation(relation: Any, relations: frozenset[str]) -> None:
    parts = [str(part) for part in elements(relation.multipartIdentifier())]
    if len(parts) != 1 or parts[0].lower() not in relations:
        given = ", ".join(sorted(relations))
        raise UnsafeSql(f"the relation `{'.'.join(parts)}` is not given here; given: {given}")
    if relation.isStreaming() or not relation.options().isEmpty():
        raise UnsafeSql(f"the relation `{parts[0]}` takes no options")
