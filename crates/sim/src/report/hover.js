// Shows what is said about the thing under the pointer, and lights up the same job under every policy.
(() => {
  const tip = document.getElementById("tip");
  const byJob = new Map();
  for (const title of document.querySelectorAll("svg g > title")) {
    const group = title.parentElement;
    group.dataset.tip = title.textContent;
    group.setAttribute("aria-label", title.textContent);
    title.remove();
    const job = group.dataset.job;
    if (job !== undefined) byJob.set(job, [...(byJob.get(job) || []), group]);
  }
  let lit = [];
  const show = (event) => {
    const group = event.target.closest && event.target.closest("[data-tip]");
    for (const one of lit) one.classList.remove("lit");
    lit = (group && byJob.get(group.dataset.job)) || [];
    for (const one of lit) one.classList.add("lit");
    tip.hidden = !group;
    if (!group) return;
    tip.textContent = group.dataset.tip;
    const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
    const below = event.clientY + 18 + tip.offsetHeight < innerHeight;
    const top = below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 12;
    tip.style.transform = `translate(${Math.max(8, left)}px, ${Math.max(8, top)}px)`;
  };
  addEventListener("pointermove", show, { passive: true });
  addEventListener("pointerdown", show, { passive: true });
  document.documentElement.dataset.ready = "yes";
})();
