#!/usr/bin/env python3
"""Writes a C++ fragment with the page that the given files make: embed.py page.html page.css part.js... > page_text.inc

Style and script go where page.html says {{style}} and {{script}}, their hashes into its content security policy, and the
page is cut in two at {{data}}."""

import base64
import hashlib
import sys

# GCC takes longer literals, the standard promises no more.
LITERAL = 60000


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def hash_of(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def literal(name, text):
    assert ')PAGE"' not in text
    pieces = [text[i : i + LITERAL] for i in range(0, len(text), LITERAL)]
    return f"constexpr std::string_view {name} = " + "\n".join(f'R"PAGE({piece})PAGE"' for piece in pieces) + ";\n"


def main():
    page, style, *scripts = [read(path) for path in sys.argv[1:]]
    # One closure: nothing of the page is global.
    script = '"use strict";\n(() => {\n' + "\n".join(scripts) + "})();\n"
    for name, text in {"style": style, "script": script}.items():
        assert "</" + name not in text
        page = page.replace("{{%s_hash}}" % name, hash_of(text)).replace("{{%s}}" % name, text)
    before, after = page.split("{{data}}")
    sys.stdout.write(literal("kBefore", before) + literal("kAfter", after))


if __name__ == "__main__":
    main()
