"""What static hosts show for an address that no file has (`404.html`): old trials are found by it.

It is shown at the address that was asked for, at any depth, and the root of the site is not known. So
all that it needs is inside of it, allowed by its hash.
"""

import hashlib
from base64 import b64encode

from markupsafe import Markup

from reports.site.rendering import render
from reports.site.writing import SiteFile

NOT_FOUND_PAGE = "404.html"
_STYLE = """
body { max-width: 44rem; margin: 3rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
code { overflow-wrap: anywhere; }
"""
# A place relative to the one that was asked for leaves no host. It replaces that, so that whoever
# goes back is not led here again. Where the page of the night is gone, too, nothing is led on.
_SCRIPT = """
"use strict";
// A name with a capital letter is written there without dots, with a hash at its end.
const name = /\\/trials\\/([^\\/]+)\\.html$/u.exec(location.pathname)?.[1] ?? "";
const asked = /^([^.]+)\\./u.exec(name) ?? /^((?:[a-z]+-)?\\d{4}-\\d\\d-\\d\\d-\\d+)-/u.exec(name);
if (asked) {
  const place = `../night/${asked[1]}.html#${name}`;
  const led = document.getElementById("led");
  led.firstElementChild.href = place;
  led.hidden = false;
  location.replace(place);
}
"""


def render_not_found() -> SiteFile:
    """Return the page."""
    return render(
        "not_found.html",
        NOT_FOUND_PAGE,
        script=Markup(_SCRIPT),  # noqa: S704  our own
        style=Markup(_STYLE),  # noqa: S704  our own
        script_hash=_hash(_SCRIPT),
        style_hash=_hash(_STYLE),
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
