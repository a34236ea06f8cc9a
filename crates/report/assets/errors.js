// Any script that fails leaves its message in data-errors on the root element.
window.addEventListener("error", function (event) {
  const root = document.documentElement;
  root.dataset.errors = (root.dataset.errors || "") + event.message + "\n";
});
