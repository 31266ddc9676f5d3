"""The SQL of documents and options: it computes values, and can do nothing else.

A text is parsed by Spark's own parser, and every part of the tree must be on a list: one query over
the relations that are given to it, or one expression over the fields of a record. Commands, other
relations (files and catalogues are relations to Spark), hints, placeholders and functions that are
not in `safe_sql.txt` are refused before anything is analysed or executed.

What a text may use up is bounded by the memory of the session alone; docs/security.md says more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession

from streamquake.harness.reconcile.safe_lists import (
    ALLOWED,
    functions,
    generators,
    names_of_functions,
    parts_of_expressions,
    parts_of_queries,
)
from streamquake.topologies.problems import bad_input, did_you_mean

SENT = frozenset({"sent"})
CATALYST = "org.apache.spark.sql.catalyst."
LONGEST = 100_000
"""Characters of one text."""
MOST_PARTS = 20_000
"""Parts of one tree."""
LARGEST_COUNT = 1_000_000
"""The largest number that may be written as a count of what a function makes."""
COUNTED = {"repeat": 1, "space": 0, "lpad": 1, "rpad": 1, "array_repeat": 1, "sequence": 1}
"""Functions that make as much as they are told -> which argument says how much."""


class _Unsafe(Exception):
    """What is wrong with a text."""


def safe_query(
    spark: SparkSession, text: str, place: str, relations: frozenset[str] = SENT
) -> DataFrame:
    """The rows of one query over some relations, views of the session.

    Raises BadInput for a text that is more than such a query, before anything of it is executed;
    AnalysisException where it does not fit the relations.
    """
    refuse_unsafe_query(spark, text, place, relations)
    return spark.sql(text)


def refuse_unsafe_query(
    spark: SparkSession, text: str, place: str, relations: frozenset[str] = SENT
) -> None:
    """Raise BadInput for a text that is not one query over these relations."""
    _refuse_long(text, place)
    try:
        tree = _parser(spark).parsePlan(text)
    except ParseException as error:
        said = next(line for line in str(error).splitlines() if line.strip())
        raise bad_input(
            place, f"expected one query of Spark SQL, got another text: {said}"
        ) from error
    _refuse(spark, tree, place, relations)


def safe_expression(spark: SparkSession, text: str, place: str) -> Any:
    """The tree of one expression over the fields of a record.

    Raises BadInput where it does more than compute; ParseException where it is no expression.
    """
    _refuse_long(text, place)
    tree = _parser(spark).parseExpression(text)
    _refuse(spark, tree, place, None)
    return tree


def _parser(spark: SparkSession) -> Any:
    return spark._jsparkSession.sessionState().sqlParser()


def _refuse_long(text: str, place: str) -> None:
    if len(text) > LONGEST:
        message = f"expected SQL of at most {LONGEST:,} characters, got {len(text):,}"
        raise bad_input(place, message)


def _refuse(spark: SparkSession, tree: Any, place: str, given: frozenset[str] | None) -> None:
    """Refuse what is on no list; `given` are the relations of a query, None for an expression."""
    allowed = parts_of_expressions() if given is None else parts_of_queries()
    try:
        nodes = list(_nodes(spark, tree))
        known = (given or frozenset()).union(*map(_own_relations, nodes))
        for node in nodes:
            if node.kind not in allowed:
                wanted = "an expression over one record" if given is None else "one query"
                raise _Unsafe(f"expected {wanted}, got SQL with {node.short}, not allowed here")
            _refuse_node(node, known, is_query=given is not None)
    except _Unsafe as unsafe:
        raise bad_input(place, str(unsafe)) from None


class _Node(NamedTuple):
    """A part of a tree, and its class below `CATALYST`."""

    kind: str
    it: Any

    @property
    def short(self) -> str:
        return self.kind.rpartition(".")[2]


def _nodes(spark: SparkSession, tree: Any) -> Iterator[_Node]:
    """Every plan and expression within a tree, wherever it is kept: also those of subqueries and
    common tables, which are no children to Spark."""
    from py4j.java_gateway import JavaObject, is_instance_of

    gateway = spark.sparkContext._gateway
    left, seen = [tree], 0
    while left:
        it = left.pop()
        if not isinstance(it, JavaObject):
            continue
        seen += 1
        if seen > MOST_PARTS:
            raise _Unsafe(f"expected SQL of at most {MOST_PARTS:,} parts, got more")
        if is_instance_of(gateway, it, CATALYST + "trees.TreeNode"):
            yield _Node(it.getClass().getName().removeprefix(CATALYST).rstrip("$"), it)
        elif is_instance_of(gateway, it, "scala.collection.Iterable"):
            left += _each(it.toSeq())
            continue
        if is_instance_of(gateway, it, "scala.Product"):
            left += [it.productElement(turn) for turn in range(it.productArity())]


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(turn) for turn in range(sequence.size())]


def _own_relations(node: _Node) -> frozenset[str]:
    """The names that a query gives to queries within it."""
    if node.short != "UnresolvedWith":
        return frozenset()
    return frozenset(str(common._1()).lower() for common in _each(node.it.cteRelations()))


def _refuse_node(node: _Node, relations: frozenset[str], *, is_query: bool) -> None:
    match node.short:
        case "UnresolvedFunction":
            _refuse_function(_each(node.it.nameParts()), node.it)
        case "UnresolvedGenerator":
            _refuse_generator(str(node.it.name().unquotedString()))
        case "UnresolvedTableValuedFunction":
            _refuse_generator(".".join(map(str, _each(node.it.name()))))
        case "UnresolvedRelation":
            _refuse_relation(node.it, relations)
        case "UnresolvedWith" if node.it.allowRecursion():
            raise _Unsafe("expected a query that ends, got WITH RECURSIVE")
        case "UnresolvedAttribute" if is_query:
            _refuse_name(".".join(map(str, _each(node.it.nameParts()))))


def _refuse_name(name: str) -> None:
    if name.lower() in names_of_functions():
        message = f"`{name}` is a function to Spark, not allowed here; call the column otherwise"
        raise _Unsafe(message)


def _refuse_function(parts: list[Any], function: Any) -> None:
    name = ".".join(map(str, parts)).lower()
    reasons = functions()
    if name not in reasons:
        known = (each for each, why in reasons.items() if why == ALLOWED)
        near = did_you_mean(name, known).partition(" known:")[0].rstrip(";")
        raise _Unsafe(f"`{name}` is no function that is allowed here{near}")
    if reasons[name] != ALLOWED:
        raise _Unsafe(f"the function `{name}` is not allowed here: {reasons[name]}")
    if name in COUNTED:
        _refuse_large(name, _each(function.arguments()))


def _refuse_large(name: str, arguments: list[Any]) -> None:
    """Refuse what is written as larger than any record; what is computed is not known yet."""
    numbers = [_written_number(each) for each in arguments]
    count = numbers[COUNTED[name]] if COUNTED[name] < len(numbers) else None
    if name == "sequence" and len(numbers) == 2 and count is not None:
        count = None if numbers[0] is None else abs(count - numbers[0])
    if count is not None and count > LARGEST_COUNT:
        raise _Unsafe(f"`{name}` may make at most {LARGEST_COUNT:,}, got {count:,.0f}")


def _written_number(argument: Any) -> float | None:
    try:
        return float(str(argument.sql()).rstrip("LSYDBlsydb")) if argument.foldable() else None
    except ValueError:
        return None


def _refuse_generator(name: str) -> None:
    if name.lower() not in generators():
        known = ", ".join(sorted(generators()))
        raise _Unsafe(f"`{name}` may not make rows here; these may: {known}")


def _refuse_relation(relation: Any, relations: frozenset[str]) -> None:
    parts = [str(part) for part in _each(relation.multipartIdentifier())]
    if len(parts) != 1 or parts[0].lower() not in relations:
        given = ", ".join(sorted(relations))
        raise _Unsafe(f"the relation `{'.'.join(parts)}` is not given here; given: {given}")
    if relation.isStreaming() or not relation.options().isEmpty():
        raise _Unsafe(f"the relation `{parts[0]}` takes no options")
