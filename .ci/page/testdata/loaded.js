// loaded adds an element to the document, and returns what read says once it has loaded. What does
// neither load nor fail in two seconds has shown nothing.
function loaded(element, read) {
  return new Promise((done) => {
    const end = (text) => { element.remove(); done(text); };
    element.onload = () => end(read(element));
    element.onerror = () => end("refused");
    setTimeout(() => end("nothing"), 2000);
    document.body.append(element);
  });
}
