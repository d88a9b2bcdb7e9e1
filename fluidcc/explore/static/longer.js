// Slow work: one request whose answer comes in lines, with progress; aborted when superseded.

export class SlowTask {
  constructor(name, working, done, failed) {
    Object.assign(this, { name, working, done, failed, key: null, result: null, stop: null });
  }

  drop() {
    this.stop?.abort();
    this.stop = null;
    this.key = null;
    this.working.hidden = true;
  }

  async run(parameters, key = parameters.toString()) {
    if (key === this.key) return;
    this.drop();
    const stop = (this.stop = new AbortController());
    this.key = key;
    const [bar, label] = this.working.children;
    bar.removeAttribute("value");
    label.textContent = "waiting \u2026";
    const started = performance.now();
    const show = setTimeout(() => { this.working.hidden = false; }, 250);
    try {
      const answer = await fetch(`api/${this.name}?${parameters}`, { signal: stop.signal });
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let buffer = "";
      for (let part = await lines.read(); !part.done; part = await lines.read()) {
        buffer += part.value;
        const complete = buffer.split("\n");
        buffer = complete.pop();
        for (const text of complete) this.take(JSON.parse(text), bar, label, started);
      }
      if (buffer) this.take(JSON.parse(buffer), bar, label, started);
    } catch (error) {
      if (!stop.signal.aborted) {
        this.key = null; // so that the same request can be repeated
        this.failed({ error: `The server does not answer (${error.message}).` });
      }
    } finally {
      clearTimeout(show);
      if (this.stop === stop) {
        this.working.hidden = true;
        this.stop = null;
      }
    }
  }

  take(line, bar, label, started) {
    const seconds = Math.round((performance.now() - started) / 1000);
    if (line.result) {
      this.result = line.result;
      this.done(line.result);
    } else if (line.error) this.failed(line);
    else {
      if (line.share) bar.value = line.share;
      label.textContent = `${line.share ? `${Math.round(100 * line.share)} %` : "compiling or computing"}, ${seconds} s`;
    }
  }
}
