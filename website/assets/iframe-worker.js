// Browsers start no workers for pages that are files. There, the search runs in a hidden
// frame with the interface of a worker, as far as the search uses it.

class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    this.inside = frame.contentWindow;
    this.inside.postMessage = (data) =>
      this.dispatchEvent(new MessageEvent("message", { data }));
    const script = frame.contentDocument.createElement("script");
    script.src = url;
    this.loaded = new Promise((resolve) => (script.onload = resolve));
    frame.contentDocument.body.append(script);
  }

  async postMessage(data) {
    await this.loaded;
    this.inside.dispatchEvent(new MessageEvent("message", { data }));
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
