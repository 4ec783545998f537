/** `checkServerIdentity` as Node calls it: with what the server has shown, as objects of the form that `getPeerCertificate(true)` gives. */
import { X509Certificate } from 'node:crypto';
import tls, { type DetailedPeerCertificate } from 'node:tls';
import type { NativeIdentityRefusal, NativeTls } from '../native/types.js';

/** Gives an error, or anything true, for a server that is not who it should be. */
export type CheckServerIdentity = (host: string, certificate: DetailedPeerCertificate) => unknown;

/** Numbers of the users' functions. */
const numbers = new WeakMap<object, number>();
let last = 0;

/** A number for a function: connections are shared where the same one decides. */
export function numberOf(decides: object): number {
  const number = numbers.get(decides) ?? ++last;
  numbers.set(decides, number);
  return number;
}

/**
 * The user's function, as the engine calls it.
 * @param ca PEM text of the authorities that are trusted in place of the world's
 */
export function identityCheck(check: CheckServerIdentity, ca: string | undefined): NativeTls['checkIdentity'] {
  return (host, shown) => {
    try {
      const refusal: unknown = check(host, peerCertificate(shown, ca));
      return refusal ? told(refusal) : undefined;
    } catch (error) {
      return told(error);
    }
  };
}

function told(refusal: unknown): NativeIdentityRefusal {
  const { message, code } = Object(refusal) as { message?: unknown; code?: unknown };
  const text = typeof message === 'string' ? message : String(refusal);
  return { message: text, ...(typeof code === 'string' && { code }) };
}

/** A server's certificate. Each has its issuer's as `issuerCertificate`; the last one has itself, as a root does. */
function peerCertificate(shown: readonly Uint8Array[], ca: string | undefined): DetailedPeerCertificate {
  const [own, ...others] = shown.map((der) => new X509Certificate(der));
  const chain = [own];
  const authorities = [...others, ...trusted(ca)];
  for (let last = own; !last.checkIssued(last) && chain.length <= authorities.length; last = chain[chain.length - 1]) {
    const issuer = authorities.find((authority) => last.checkIssued(authority));
    if (!issuer) break;
    chain.push(issuer);
  }
  let above: DetailedPeerCertificate | undefined;
  for (const certificate of chain.reverse()) {
    const object = certificate.toLegacyObject() as DetailedPeerCertificate;
    object.issuerCertificate = above ?? object;
    above = object;
  }
  return above as DetailedPeerCertificate;
}

const ONE = /-----BEGIN CERTIFICATE-----[^]+?-----END CERTIFICATE-----/g;

function trusted(ca: string | undefined): X509Certificate[] {
  const texts = ca === undefined ? tls.rootCertificates : (ca.match(ONE) ?? []);
  return texts.map((text) => new X509Certificate(text));
}
