// Looks through the titles, headings and symbols of index.js, which build.py writes.
"use strict";
(() => {
  const base = document.currentScript.dataset.base;
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  const most = 12;

  const rank = (entry, words) => {
    const name = entry[0].toLowerCase();
    if (!words.every((word) => name.includes(word))) return -1;
    const last = name.split("::").pop();
    return (last === words[0] ? 0 : last.startsWith(words[0]) ? 1 : 2) + name.length / 1000;
  };

  const show = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const hits = words.length
      ? window.sottoIndex
          .map((entry) => [rank(entry, words), entry])
          .filter(([order]) => order >= 0)
          .sort((a, b) => a[0] - b[0])
          .slice(0, most)
      : [];
    found.replaceChildren(
      ...hits.map(([, [name, url, where]]) => {
        const item = document.createElement("li");
        const link = document.createElement("a");
        link.href = base + url;
        link.textContent = name;
        const place = document.createElement("span");
        place.textContent = where;
        link.append(place);
        item.append(link);
        return item;
      }),
    );
    found.hidden = hits.length === 0;
  };

  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && found.firstChild) found.querySelector("a").click();
    if (event.key === "Escape") {
      input.value = "";
      show();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
  });
})();
