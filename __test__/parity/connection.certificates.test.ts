// Pins by which code the refusal of a server's certificate is told.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { libraries } from '../support/libraries.js';
import { useStage } from '../support/stage.js';
import { Authority, TlsFront, type Certificate } from '../support/tls.js';
import { EventLog } from '../support/waiting.js';

describe.each(libraries)('$name: connection.certificates', ({ lib }) => {
  const stage = useStage(lib);
  let authority: Authority;
  beforeAll(() => {
    authority = new Authority();
  });
  afterAll(() => authority.close());

  const NAME = 'DNS:localhost,IP:127.0.0.1';
  const withRoot = ({ cert, key }: Certificate): Certificate => ({ cert: `${cert}${authority.ca}`, key });

  it.each<[string, string, () => { shown: Certificate; tls: object }]>([
    [
      'that signs itself',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      () => ({ shown: authority.selfSigned('/CN=localhost'), tls: {} }),
    ],
    [
      'that signs itself, and is not the one that is trusted',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      () => ({ shown: authority.selfSigned('/CN=localhost'), tls: { ca: authority.ca } }),
    ],
    [
      'of an authority that is not known',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      () => ({ shown: authority.sign(NAME), tls: {} }),
    ],
    [
      'of an authority that shows itself',
      'SELF_SIGNED_CERT_IN_CHAIN',
      () => ({ shown: withRoot(authority.sign(NAME)), tls: {} }),
    ],
    [
      'for another name',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      () => ({ shown: authority.sign('DNS:other.example'), tls: { ca: authority.ca } }),
    ],
    [
      'that has expired',
      'CERT_HAS_EXPIRED',
      () => ({ shown: authority.sign(NAME, { expired: true }), tls: { ca: authority.ca } }),
    ],
  ])('a certificate %s: %s', async (_, code, given) => {
    const { shown, tls } = given();
    const { port } = stage.keep(await new TlsFront(shown).open());
    const queue = stage.keep(new lib.Queue(stage.queueName, { connection: { host: '127.0.0.1', port, tls } }));
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    expect(error).toMatchObject({ code });
  });
});
