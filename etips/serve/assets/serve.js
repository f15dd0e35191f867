// What pages need beyond htmx: arrow keys, sliders that follow their numbers, sizes of drawings.
(() => {
  "use strict";

  const typing = (element) => element && /^(INPUT|SELECT|TEXTAREA)$/.test(element.tagName);

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || typing(event.target)) return;
    const id = { ArrowLeft: "back", ArrowRight: "next" }[event.key];
    const link = id && document.getElementById(id);
    if (!link) return;
    event.preventDefault();
    link.click();
  });

  // A slider and a number of one value: whichever is moved, the other follows.
  document.addEventListener("input", (event) => {
    const own = event.target;
    const other = own.dataset && own.dataset.twin && document.getElementById(own.dataset.twin);
    if (other && own.value !== "") other.value = own.value;
  });

  document.addEventListener("click", (event) => {
    if (event.target.id !== "as-it-was") return;
    const form = event.target.closest("form");
    form.reset();
    form.dispatchEvent(new Event("change", { bubbles: true }));
  });

  const size = (root) => root.querySelectorAll("[data-style]").forEach((own) => {
    own.style.cssText = own.dataset.style;
  });
  const follow = (root) => {
    const field = root.querySelector("#fields");
    if (field) field.addEventListener("change", () => {
      const chosen = [...field.querySelectorAll("input:checked")].map((own) => own.value);
      const address = new URL(window.location.href);
      address.searchParams.set("f", chosen.join("-"));
      window.location.assign(address);
    });
  };
  document.addEventListener("DOMContentLoaded", () => { size(document); follow(document); });
  document.addEventListener("htmx:load", (event) => { size(event.detail.elt); follow(event.detail.elt); });
})();
