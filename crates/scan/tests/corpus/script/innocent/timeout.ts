// a timer
setTimeout(() => {}, 10);
setInterval(function () {}, 10);
