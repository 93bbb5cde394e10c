"""Untrusted text in Markdown, read back by the parser that GitHub uses."""

import html
import re

import cmarkgfm
import pytest
from budget import tries
from cmarkgfm.cmark import Options
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reports.wording.markdown import block, clean, code, escape

SPECIALS = (
    *("`", "``", "|", "\\", "*", "_", "~~", "[", "](", "![", "<", ">", "&", "&lt;", "&#64;", "#", "$"),
    *("- ", "+ ", "1. ", "=", "---", "\n", "\r\n", "\t", "    ", "\u202e", "\u200b", "\x00", "\u2028"),
    *("@octocat", "@org/team", "#1", "GH-2", "a/b#3", "a@b.example", "mailto:a@b.example", ":tada:"),
    *("http://evil.example", "HTTPS://evil.example", "ftp://evil.example", "www.evil.example"),
    *("[a](http://evil.example)", "<script>", "<!--", "</details>", "3f1c9a27d5e84b60a1c2d3", "[^1]"),
    *("abcdef1", "x", " ", "(", ")", ":", "//", "é", "😀"),
)
TEXTS = st.lists(st.sampled_from(SPECIALS) | st.text(max_size=3), max_size=8).map("".join)
TEMPLATES = (
    "{}",
    "**{}** after",
    "- {}",
    "> - {}",
    "| head | more |\n| --- | --- |\n| {} | the next cell |",
    "<sub>{}</sub>",
)
PLAIN_TAGS = {
    "p",
    "strong",
    "ul",
    "li",
    "blockquote",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "sub",
}
REFERENCES = re.compile(
    r"@\w|#\d|\bgh-\d|(?<![0-9a-z])[0-9a-f]{7,64}(?![0-9a-z])|:[\w+-]+:|://|www\.", re.IGNORECASE
)
"""What the second layer of GitHub finds in rendered text outside of code."""


def render(text: str) -> str:
    return cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)


def tags(rendered: str) -> set[str]:
    return {name.lower() for name in re.findall(r"<\s*([a-zA-Z!?][\w-]*)", rendered)}


def shown(rendered: str) -> str:
    """Return the text of a page as one sees it, without what cannot be seen."""
    return html.unescape(re.sub(r"<[^>]*>", "", rendered)).replace("\u200b", "").strip()


@settings(max_examples=tries(100), deadline=None)
@given(text=TEXTS, template=st.sampled_from(TEMPLATES))
def test_escaped_text_shows_as_it_is_and_does_nothing(text: str, template: str) -> None:
    assume(clean(text))
    rendered = render(template.format(escape(text)))
    assert tags(rendered) <= PLAIN_TAGS
    assert not REFERENCES.search(html.unescape(re.sub(r"<[^>]*>", "", rendered)))
    assert " ".join(shown(rendered).split()) == " ".join(
        shown(render(template).replace("{}", html.escape(clean(text)))).split()
    )


@settings(max_examples=tries(100), deadline=None)
@given(text=TEXTS, template=st.sampled_from(TEMPLATES))
def test_code_shows_as_it_is_inside_one_element(text: str, template: str) -> None:
    rendered = render(template.format(f"x {code(text)}"))
    assert tags(rendered) <= PLAIN_TAGS | {"code"}
    found = re.findall(r"<code>(.*?)</code>", rendered, re.DOTALL)
    visible = [html.unescape(one).replace("\u200b", "") for one in found]
    assert visible == [clean(text)] * bool(clean(text))


@settings(max_examples=tries(50), deadline=None)
@given(lines=st.lists(TEXTS, max_size=4))
def test_a_block_of_code_stays_closed(lines: list[str]) -> None:
    rendered = render(f"{block(chr(10).join(lines))}\n\n**after**")
    assert tags(rendered) <= {"pre", "code", "p", "strong"}
    assert rendered.count("<pre") == 1
    assert rendered.rstrip().endswith("<p><strong>after</strong></p>")


def test_nothing_joins_up_again_when_the_invisible_is_removed() -> None:
    assert "@\u200bocto" not in clean("@\u200bocto")
    assert REFERENCES.search(shown(render(escape("ht\u200btp://x @\u202eocto"))))  # seen, but broken
    assert "<a" not in render(escape("ht\u200btp://evil.example w\u200bww.evil.example"))


@pytest.mark.parametrize("text", ["5.0.6", "1.5 s", "−3 %", "a-b", "default", "2 hours"])
def test_harmless_text_stays_readable_in_the_source(text: str) -> None:
    assert escape(text) == text


def test_long_text_is_cut_before_it_is_escaped() -> None:
    assert escape("<" * 50, 3) == "&lt;&lt;&lt; …"
    assert code("x" * 50, 4) == "`xxxx …`"
