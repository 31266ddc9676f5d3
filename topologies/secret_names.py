"""How secrets are recognised: by the names of settings, and by what a text contains.

Too much is hidden rather than too little: a message or a record without a harmless value is still
of use. Texts may be long and from any author, so every search of them is bounded.
"""

from __future__ import annotations

import re

_OTHER_WORDS = r"(?<!by)(?<!com)(?<!over)(?<!tres)"
"""Words that end in `pass` and are no password: bypass, compass."""
_NO_COUNT = r"(?<!max)(?<!max[-_. ])(?<!min)(?<!min[-_. ])(?<!num)(?<!num[-_. ])"
_OF_TOKENS = "enabled|renewal|master|per|count|limit"
"""What a setting names behind tokens where it does not hold them, but says how they are used."""
_NAME = (
    rf"pass(?:word|wd|phrase|code|key)|{_OTHER_WORDS}pass(?![a-z]|[-_.]?through)"
    r"|(?<=[-_.;&?a-z0-9])(?<!(?-i:OLD))pwd(?![a-z])"
    r"|(?-i:(?<![A-Za-z])pwd(?![A-Za-z]))"  # in capitals it is the folder of a shell
    rf"|secret|token(?!s)|{_NO_COUNT}tokens(?![a-z]|[-_.](?:{_OF_TOKENS}))"
    r"|credential|jaas"
    r"|(?:private|api|access|account|storage|keystore)[-_.]?key"
)
NAME = re.compile(_NAME, re.IGNORECASE)
"""A name of a secret, which the names of settings contain."""
_LOGIN = re.compile(r":/+[^/\s:@]*:(?!\d{1,5}(?:[,/?#\s]|$))\S{1,500}@")
"""An address with a password, and not one whose path has an @ behind its port."""
_ASSIGNED = re.compile(rf"(?:{_NAME})[\w.-]{{0,200}}[\"']?\s*[=:](?!//)\s*[^\s,;&]", re.IGNORECASE)
_HEADER = re.compile(
    r"\b(?:Bearer\s+\S|Basic\s+(?=\S*[0-9=])[A-Za-z0-9+/]{8,}={0,2}(?!\S))", re.IGNORECASE
)
_SCHEME = re.compile(r"(?:\w+:/+)?")


def names_secret(text: str) -> bool:
    """Whether a name, or a text with names, has one of a secret."""
    return NAME.search(text) is not None


def contains_secret(text: str) -> bool:
    """Whether a text has an address with a password, a secret behind its name (`password=x`,
    `-Dtrust.password=x`, `s3.secret-key: x`), or the header of a login."""
    return any(pattern.search(text) for pattern in (_LOGIN, _ASSIGNED, _HEADER))


def without_login(address: str) -> str:
    """An address as messages show it: without user and password, whatever these consist of."""
    login, _, rest = address.rpartition("@")
    scheme = _SCHEME.match(login)
    begin = scheme[0] if scheme else ""
    return f"{begin}***@{rest}" if ":" in login[len(begin) :] else address
