// Longer work: one request whose answer comes in lines, told of as it goes, given up when unwanted.

export class Longer {
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
    const [bar, words] = this.working.children;
    bar.removeAttribute("value");
    words.textContent = "waiting \u2026";
    const begun = performance.now();
    const show = setTimeout(() => { this.working.hidden = false; }, 250);
    try {
      const answer = await fetch(`api/${this.name}?${parameters}`, { signal: stop.signal });
      const lines = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let part = await lines.read(); !part.done; part = await lines.read()) {
        rest += part.value;
        const whole = rest.split("\n");
        rest = whole.pop();
        for (const text of whole) this.take(JSON.parse(text), bar, words, begun);
      }
      if (rest) this.take(JSON.parse(rest), bar, words, begun);
    } catch (error) {
      if (!stop.signal.aborted) {
        this.key = null; // the same may be asked again
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

  take(line, bar, words, begun) {
    const seconds = Math.round((performance.now() - begun) / 1000);
    if (line.result) {
      this.result = line.result;
      this.done(line.result);
    } else if (line.error) this.failed(line);
    else {
      if (line.share) bar.value = line.share;
      words.textContent = `${line.share ? `${Math.round(100 * line.share)} %` : "computing, at first compiling"}, ${seconds} s`;
    }
  }
}
