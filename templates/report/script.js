"use strict";
const $ = (id) => document.getElementById(id);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

const list = $("list");
if (list) {
  const findings = all("details.finding", list);
  const first = [...findings];
  const onlyNew = () => $("new") !== null && $("new").checked;
  const apply = () => {
    const words = $("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const item of findings) {
      const data = item.dataset;
      const ok = ["frontend", "operator", "symptom", "stage"].every((key) => {
        const wanted = $("by-" + key).value;
        return !wanted || (key === "operator" ? data.operators.split("\n").includes(wanted) : data[key] === wanted);
      }) && (!$("ready").checked || data.ready === "1")
        && (!onlyNew() || data.new === "1")
        && words.every((word) => data.text.includes(word));
      item.hidden = !ok;
      shown += ok;
    }
    $("count").textContent = `${shown} of ${findings.length} shown`;
    $("none").hidden = shown > 0;
  };
  for (const id of ["q", "by-frontend", "by-operator", "by-symptom", "by-stage", "ready", "new"]) {
    if ($(id)) $(id).addEventListener("input", apply);
  }
  const heads = all(".heads button");
  $("reset").addEventListener("click", () => {
    $("q").value = "";
    $("ready").checked = false;
    if ($("new")) $("new").checked = false;
    for (const head of heads) delete head.dataset.dir;
    list.append(...first);
    for (const key of ["frontend", "operator", "symptom", "stage"]) $("by-" + key).value = "";
    apply();
  });
  for (const head of heads) {
    head.addEventListener("click", () => {
      const numeric = "numeric" in head.dataset;
      const direction = head.dataset.dir ? -Number(head.dataset.dir) : numeric ? -1 : 1;
      for (const other of heads) delete other.dataset.dir;
      head.dataset.dir = direction;
      const key = head.dataset.key;
      findings.sort((a, b) => direction * (numeric
        ? Number(a.dataset[key]) - Number(b.dataset[key])
        : a.dataset[key].localeCompare(b.dataset[key])));
      list.append(...findings);
    });
  }
  const open = () => {
    const target = $(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.hidden = false;
      target.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", open);
  open();
  apply();
}

for (const button of all("button.copy")) {
  button.addEventListener("click", async () => {
    const code = $(button.dataset.of);
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
}

if ($("matrix")) {
  const rows = all("#matrix tbody tr");
  const apply = () => {
    const wanted = $("matrix-q").value.toLowerCase();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.dataset.operator.includes(wanted) || ($("failing").checked && row.dataset.failing === "0");
      shown += !row.hidden;
    }
    $("matrix-count").textContent = `${shown} of ${rows.length} operators shown`;
  };
  $("matrix-q").addEventListener("input", apply);
  $("failing").addEventListener("input", apply);
  apply();
}
