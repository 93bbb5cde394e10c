// Commands can be copied: each block that is marked for it gets a button.
"use strict";

(() => {
  const kp = window.knickpoint;
  for (const block of document.querySelectorAll("[data-copy-text]")) {
    const button = kp.element("button", { type: "button", ariaLabel: `Copy: ${block.getAttribute("aria-label")}` }, "Copy");
    const said = kp.element("span", { className: "unseen", role: "status" });
    button.addEventListener("click", async () => {
      try {
        await kp.tables.put(block.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not copied";
      }
      said.textContent = `${button.textContent}.`;
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    block.after(button, said);
  }
})();
