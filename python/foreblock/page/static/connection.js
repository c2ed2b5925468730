// JSON-RPC with one network: over WebSocket, or over HTTP if WebSocket does not work.
//
// A lost connection is opened again after 0.25 to 4 seconds, as long as the page is open. After each
// opening the owner reads everything again (`opened`), because it may have missed events.

const TIMEOUT = 15_000;
const SHORTEST_WAIT = 250, LONGEST_WAIT = 4_000;
const TRIES_BEFORE_POLLING = 2;
const AGAIN_AFTER = 30_000; // while polling

export class RpcError extends Error {
  constructor({ code, message, data }) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export class Connection {
  /** `http` is empty if the address has another origin, which HTTP cannot read. */
  constructor(socket, http, owner) {
    Object.assign(this, { address: socket, http, owner });
    this.state = "connecting";
    this.waiting = new Map();
    this.handlers = new Map();
    this.last = 0;
    this.wait = SHORTEST_WAIT;
    this.failures = 0;
  }

  open() {
    clearTimeout(this.timer);
    const socket = new WebSocket(this.address);
    this.socket = socket;
    socket.onopen = () => {
      this.wait = SHORTEST_WAIT;
      this.failures = 0;
      this.#become("live");
    };
    socket.onmessage = (event) => this.#take(JSON.parse(event.data));
    socket.onclose = () => socket === this.socket && this.#lost();
  }

  /** Disconnect until `open` is called. */
  close() {
    clearTimeout(this.timer);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.#forget();
    this.#become("paused");
  }

  async #lost() {
    this.socket = null;
    this.failures += 1;
    this.#forget();
    this.timer = setTimeout(() => this.open(), this.state === "polling" ? AGAIN_AFTER : this.wait);
    this.wait = Math.min(this.wait * 1.6, LONGEST_WAIT);
    if (this.state === "polling") return;
    this.#become("lost");
    if (this.http && this.failures > TRIES_BEFORE_POLLING && (await this.#answersHttp())) {
      if (this.state !== "lost") return;
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.open(), AGAIN_AFTER);
      this.#become("polling");
    }
  }

  /** Polling has failed too: the service is away. */
  unreachable() {
    if (this.state !== "polling") return;
    this.#become("lost");
    this.failures = 0;
    this.open();
  }

  async #answersHttp() {
    try {
      return (await fetch(this.http)).ok;
    } catch {
      return false;
    }
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    if (state === "live" || state === "polling") this.owner.opened(state);
    else this.owner.closed(state);
  }

  #forget() {
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new Error("the connection was lost"));
    }
    this.waiting.clear();
    this.handlers.clear();
  }

  #take(message) {
    const answers = Array.isArray(message) ? message : [message];
    if (message.method === "eth_subscription") {
      this.handlers.get(message.params.subscription)?.(message.params.result);
      return;
    }
    // A batch is found by the id of its first request.
    const waiting = this.waiting.get(answers[0]?.id);
    if (!waiting) return;
    this.waiting.delete(answers[0].id);
    clearTimeout(waiting.timer);
    waiting.resolve(answers);
  }

  /** The result of a method. Raises `RpcError`. */
  async ask(method, ...params) {
    const [answer] = await this.#exchange([[method, params]]);
    if (answer.error) throw new RpcError(answer.error);
    return answer.result;
  }

  /** Results of `[method, ...params]` on one snapshot; in place of a failed one its `RpcError`. */
  async askAll(...requests) {
    const answers = await this.#exchange(requests.map(([method, ...params]) => [method, params]));
    return answers.map((each) => (each.error ? new RpcError(each.error) : each.result));
  }

  /** `handler` gets each result of a subscription to `[kind, ...options]`. */
  async subscribe(wanted, handler) {
    const socket = this.socket;
    const id = await this.ask("eth_subscribe", ...wanted);
    if (socket === this.socket) this.handlers.set(id, handler);
  }

  async #exchange(requests) {
    const first = this.last + 1;
    this.last += requests.length;
    const bodies = requests.map(([method, params], at) => ({ jsonrpc: "2.0", id: first + at, method, params }));
    const text = JSON.stringify(bodies.length === 1 ? bodies[0] : bodies);
    const answers = this.state === "live" ? await this.#send(first, text) : await this.#post(text);
    if (answers.length !== requests.length) throw new RpcError(answers[0].error ?? { message: "no answer" });
    return answers;
  }

  #send(id, text) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.waiting.delete(id);
        reject(new Error(`no response in ${TIMEOUT / 1000} s`));
      }, TIMEOUT);
      this.waiting.set(id, { resolve, reject, timer });
      this.socket.send(text);
    });
  }

  async #post(body) {
    if (!this.http || this.state !== "polling") throw new Error("there is no connection");
    const headers = { "Content-Type": "application/json" };
    const reply = await fetch(this.http, { method: "POST", headers, body, signal: AbortSignal.timeout(TIMEOUT) });
    const message = await reply.json();
    return Array.isArray(message) ? message : [message];
  }
}
