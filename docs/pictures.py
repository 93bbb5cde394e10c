"""Take the pictures of the documentation: `make pictures`. The demo, in a headless Chromium."""

import base64
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parent
LARGEST_BYTES = 150_000
SIZE = {"width": 1280, "height": 800}
PICTURES = {"overview.webp": "index.html"}
"""File in docs/ by page of the demo."""
_TO_WEBP = """async source => {
  const image = new Image();
  image.src = source;
  await image.decode();
  const canvas = new OffscreenCanvas(image.width, image.height);
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await canvas.convertToBlob({type: "image/webp", quality: 0.9});
  return Array.from(new Uint8Array(await blob.arrayBuffer()));
}"""


def main() -> None:
    """Write each picture; end with a reason where one cannot be taken or is too large."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("neither chromium nor google-chrome is on PATH")
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "demo"
        demo = [str(Path(sys.executable).with_name("knickpoint")), "demo", "--out", str(site)]
        subprocess.run(demo, check=True)  # noqa: S603  our own command
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport=SIZE, color_scheme="light")
            blank = browser.new_page()
            for name, address in PICTURES.items():
                page.goto((site / address).as_uri())
                taken = base64.b64encode(page.screenshot()).decode()
                small = blank.evaluate(_TO_WEBP, f"data:image/png;base64,{taken}")
                (DOCS / name).write_bytes(bytes(small))
            browser.close()
    for name in PICTURES:
        if (size := (DOCS / name).stat().st_size) > LARGEST_BYTES:
            sys.exit(f"docs/{name} has {size:,} bytes, more than {LARGEST_BYTES:,}")


if __name__ == "__main__":
    main()
