import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import type { Server, TLSSocket, TlsOptions } from 'node:tls';
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

  constructor(name = 'ChasquiMQ test authority') {
    this.#own = this.selfSigned(`/CN=${name}`);
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

  /** A list of what this authority has revoked, PEM text. */
  crl(...revoked: Certificate[]): string {
    const config = [
      'database=index',
      'crlnumber=number',
      'default_md=sha256',
      'default_crl_days=2',
      'crl_extensions=e',
    ];
    const files = {
      number: '01\n',
      index: '',
      config: `[ca]\ndefault_ca=d\n[d]\n${config.join('\n')}\n[e]\n${KEY_ID}\n`,
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.#folder, name), text);
    writeFileSync(join(this.#folder, 'ca.cert'), this.#own.cert);
    writeFileSync(join(this.#folder, 'ca.key'), this.#own.key);
    const ca = ['ca', '-config', 'config', '-cert', 'ca.cert', '-keyfile', 'ca.key'];
    for (const { cert } of revoked) {
      writeFileSync(join(this.#folder, 'revoked'), cert);
      this.#openssl(...ca, '-revoke', 'revoked');
    }
    this.#openssl(...ca, '-gencrl', '-out', 'crl');
    return readFileSync(join(this.#folder, 'crl'), 'utf8');
  }

  /** The same certificate, whose key has a passphrase. */
  locked({ cert, key }: Certificate, passphrase: string): Certificate {
    writeFileSync(join(this.#folder, 'open.key'), key);
    this.#openssl('pkcs8', '-topk8', '-in', 'open.key', '-passout', `pass:${passphrase}`, '-out', 'locked.key');
    return { cert, key: readFileSync(join(this.#folder, 'locked.key'), 'utf8') };
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

const KEY_ID = 'authorityKeyIdentifier=keyid';
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** What a client and a front have agreed on. */
export interface Agreement {
  readonly protocol: string | null;
  readonly cipher: string;
  readonly alpn: string | false | null;
  readonly servername: string | undefined;
  readonly sigalgs: readonly string[];
  /** Whose certificate the client has shown. */
  readonly client: string | undefined;
}

/** A way to the server under test that speaks TLS, whether that server does or not. */
export class TlsFront {
  readonly #sockets = new Set<TLSSocket>();
  readonly #listener: Server;
  /** One for each connection. */
  readonly agreements: Agreement[] = [];

  /** @param clientCa asks clients for a certificate of that authority */
  constructor(certificate: Certificate, clientCa?: string, options: TlsOptions = {}) {
    const clients = clientCa === undefined ? {} : { ca: clientCa, requestCert: true };
    this.#listener = createServer({ ...certificate, ...clients, ...options }, (client) => {
      this.#sockets.add(client);
      this.agreements.push(agreementOf(client));
      const upstream = connect(server.port, server.host);
      client.on('error', () => undefined).on('close', () => upstream.destroy());
      upstream.on('error', () => undefined).on('close', () => client.destroy());
      client.pipe(upstream).pipe(client);
    });
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** @param path of a unix socket, in place of a port */
  async open(path?: string): Promise<this> {
    const at = path === undefined ? { port: 0, host: '127.0.0.1' } : { path };
    await new Promise<void>((resolve) => this.#listener.listen(at, resolve));
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

function agreementOf(client: TLSSocket): Agreement {
  return {
    protocol: client.getProtocol(),
    cipher: client.getCipher().name,
    alpn: client.alpnProtocol,
    servername: (client as TLSSocket & { servername?: string }).servername || undefined,
    sigalgs: client.getSharedSigalgs(),
    client: client.getPeerCertificate().subject?.CN?.toString(),
  };
}
