// the default export, taken apart
(async () => {
  const { default: cp } = await import("child_process"); // <-
  cp.exec("ls"); // <-
})();
