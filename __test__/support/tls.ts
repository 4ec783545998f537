import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import type { Server, TLSSocket } from 'node:tls';
import { server } from './redis.js';

/** PEM texts. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** Makes certificates with openssl, valid for two days. */
export class Authority {
  readonly #folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
  readonly #own: Certificate;

  constructor() {
    this.#own = this.selfSigned('/CN=ChasquiMQ test authority');
  }

  /** What `ca` takes for certificates that this authority has signed. */
  get ca(): string {
    return this.#own.cert;
  }

  /** A certificate for `names` (`DNS:...` or `IP:...`) that this authority signs. */
  sign(names: string, { expired = false } = {}): Certificate {
    const extensions = join(this.#folder, 'extensions');
    writeFileSync(extensions, `subjectAltName=${names}\nbasicConstraints=CA:FALSE\n`);
    this.#openssl('req', '-new', ...NEW_KEY, '-keyout', 'key', '-subj', '/CN=server', '-out', 'request');
    writeFileSync(join(this.#folder, 'ca.cert'), this.#own.cert);
    writeFileSync(join(this.#folder, 'ca.key'), this.#own.key);
    const signer = ['-CA', 'ca.cert', '-CAkey', 'ca.key', '-set_serial', String(Date.now())];
    const days = ['-days', expired ? '-1' : '2'];
    this.#openssl('x509', '-req', '-in', 'request', ...signer, ...days, '-extfile', extensions, '-out', 'cert');
    return this.#read();
  }

  /** A certificate that signs itself, as `openssl req -x509` makes it for people who follow a tutorial. */
  selfSigned(subject: string, names = 'DNS:localhost,IP:127.0.0.1'): Certificate {
    const forNames = ['-subj', subject, '-addext', `subjectAltName=${names}`];
    this.#openssl('req', '-x509', ...NEW_KEY, '-keyout', 'key', ...forNames, '-days', '2', '-out', 'cert');
    return this.#read();
  }

  close(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    return Promise.resolve();
  }

  #openssl(...args: string[]): void {
    try {
      execFileSync('openssl', args, { cwd: this.#folder, stdio: 'pipe' });
    } catch (cause) {
      throw new Error('the TLS tests make their certificates with openssl, which is not on PATH or has failed', {
        cause,
      });
    }
  }

  #read(): Certificate {
    const [cert, key] = ['cert', 'key'].map((name) => readFileSync(join(this.#folder, name), 'utf8'));
    return { cert: cert ?? '', key: key ?? '' };
  }
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** A way to the server under test that speaks TLS, whether that server does or not. */
export class TlsFront {
  readonly #sockets = new Set<TLSSocket>();
  readonly #listener: Server;
  /** Certificates that clients showed. */
  readonly clientSubjects: string[] = [];

  /** @param clientCa asks clients for a certificate of that authority */
  constructor(certificate: Certificate, clientCa?: string) {
    const clients = clientCa === undefined ? {} : { ca: clientCa, requestCert: true };
    this.#listener = createServer({ ...certificate, ...clients }, (client) => {
      this.#sockets.add(client);
      if (clientCa !== undefined) this.clientSubjects.push(String(client.getPeerCertificate().subject?.CN));
      const upstream = connect(server.port, server.host);
      client.on('error', () => undefined).on('close', () => upstream.destroy());
      upstream.on('error', () => undefined).on('close', () => client.destroy());
      client.pipe(upstream).pipe(client);
    });
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#listener.listen(0, '127.0.0.1', resolve));
    return this;
  }

  /** Shows another certificate to clients from now on. */
  present(certificate: Certificate): void {
    this.#listener.setSecureContext({ ...certificate });
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#listener.close(resolve));
  }
}
