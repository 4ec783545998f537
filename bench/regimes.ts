/**
 * How a server is reached: plainly, by TLS, by way of Sentinel, as a Cluster. A scenario is the same under each of them, and knows nothing of it. The servers are
 * those of the tests, and run only while scenarios need them: even what does nothing takes CPU from what is measured beside it.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Server } from './server.js';
import type { ConnectionSettings } from './server.js';

/** Those for which the bench starts servers. */
export const ownRegimes = ['tls', 'sentinel', 'cluster'] as const;
export type OwnRegime = (typeof ownRegimes)[number];
export type Regime = 'plain' | OwnRegime;

interface Started {
  /** What the libraries are given. */
  readonly connection: ConnectionSettings;
  /** How the bench itself reaches those that have keys. */
  readonly masters: readonly ConnectionSettings[];
  close(): Promise<void>;
}

/** The server that a bench was given, and that of a regime. */
export class Servers {
  private current: { readonly regime: OwnRegime; readonly server: Server; readonly started: Started } | undefined;

  constructor(private readonly plain: Server) {}

  /** The server of a regime. That of another regime ends. */
  async of(regime: Regime = 'plain'): Promise<Server> {
    if (this.current?.regime === regime) return this.current.server;
    await this.endRegime();
    if (regime === 'plain') return this.plain;
    const started = await start[regime]();
    const server = await Server.connect(started.connection, started.masters);
    this.current = { regime, server, started };
    return server;
  }

  async close(): Promise<void> {
    await this.endRegime();
    this.plain.close();
  }

  private async endRegime(): Promise<void> {
    const ending = this.current;
    this.current = undefined;
    ending?.server.close();
    await ending?.started.close();
  }
}

/** What the tests have for it is loaded when it is wanted: it asks for a REDIS_URL at once. */
const start: Readonly<Record<OwnRegime, () => Promise<Started>>> = {
  tls: startTls,
  async sentinel() {
    const { start } = await import('../__test__/support/topology.js');
    return start.sentinel();
  },
  async cluster() {
    const { start } = await import('../__test__/support/topology.js');
    // replicas would take CPU from the masters, and say nothing about either library
    return start.cluster(0);
  },
};

/** A server with a certificate. The bench looks at it without TLS, so that looking costs no more than elsewhere. */
async function startTls(): Promise<Started> {
  const [{ Authority }, { OwnServer, withFreePort }] = await Promise.all([
    import('../__test__/support/tls.js'),
    import('../__test__/support/own-server.js'),
  ]);
  const authority = new Authority('ChasquiMQ bench authority');
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-bench-'));
  const { cert, key } = authority.sign('DNS:localhost,IP:127.0.0.1');
  const files = { 'ca-cert': authority.ca, cert, key };
  const settings = Object.entries(files).flatMap(([name, text]) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return [`--tls-${name}-file`, path];
  });
  return withFreePort(async (port) => {
    const own = await OwnServer.start('--tls-port', String(port), '--tls-auth-clients', 'no', ...settings);
    return {
      connection: { host: '127.0.0.1', port, tls: { ca: authority.ca } },
      masters: [own.connection],
      async close() {
        await own.close();
        await authority.close();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  });
}
