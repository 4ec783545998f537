import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ConnectionSettings } from '../server.js';
import type { Certificate, FromProxy, ProxySettings, ToProxy, Traffic } from './messages.js';

const PROGRAM = fileURLToPath(new URL('program.ts', import.meta.url));

/** The bench's end of a proxy process. */
export class Proxy {
  private constructor(
    private readonly child: ChildProcess,
    /** Leads to the server through the proxy. */
    readonly connection: ConnectionSettings,
  ) {}

  /** @param secure makes the way to the proxy one by TLS; `ca` has signed the certificate */
  static async open(
    to: ConnectionSettings,
    delayMs = 0,
    secure?: { readonly certificate: Certificate; readonly ca: string },
  ): Promise<Proxy> {
    const { path, tls, sentinels, nodes } = to;
    if (path ?? tls ?? sentinels ?? nodes) throw new Error('the proxy leads to one server on a port, without TLS');
    const upstream = { host: to.host ?? '127.0.0.1', port: to.port ?? 6379 };
    const settings: ProxySettings = { upstream, delayMs, ...(secure && { certificate: secure.certificate }) };
    const child = fork(PROGRAM, [JSON.stringify(settings)], { execArgv: ['--import', 'tsx'] });
    const first = await answerOf(child);
    if (!('port' in first)) throw new Error('the proxy did not say where it listens');
    return new Proxy(child, {
      ...to,
      host: '127.0.0.1',
      port: first.port,
      ...(secure && { tls: { ca: secure.ca } }),
    });
  }

  /** What went through since the last time that was `anew`. */
  async traffic(anew = false): Promise<Traffic> {
    const question: ToProxy = { ask: 'traffic', anew };
    this.child.send(question);
    const answer = await answerOf(this.child);
    if (!('traffic' in answer)) throw new Error('the proxy did not say what went through it');
    return answer.traffic;
  }

  async close(): Promise<void> {
    if (this.child.exitCode !== null || !this.child.connected) return;
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.disconnect();
    await gone;
  }
}

function answerOf(child: ChildProcess): Promise<FromProxy> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      child.off('message', heard).off('exit', ended);
      then();
    };
    const heard = (message: unknown) =>
      settle(() => {
        const answer = message as FromProxy;
        if ('fault' in answer) reject(new Error(`the proxy: ${answer.fault}`));
        else resolve(answer);
      });
    const ended = () => settle(() => reject(new Error('the proxy has ended')));
    child.once('message', heard).once('exit', ended);
  });
}
