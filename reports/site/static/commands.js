// Commands can be copied: each block that is marked for it gets a button.
"use strict";

(() => {
  const kp = window.knickpoint;
  for (const block of document.querySelectorAll("[data-copy-text]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${block.getAttribute("aria-label")}`);
    const said = document.createElement("span");
    said.className = "unseen";
    said.setAttribute("role", "status");
    button.addEventListener("click", async () => {
      try {
        await kp.tables.put(block.textContent);
        button.textContent = "Copied";
      } catch (problem) {
        button.textContent = "Not copied";
      }
      said.textContent = `${button.textContent}.`;
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    block.after(button, said);
  }
})();
