/** Names of what a TLS handshake offers, as Node and OpenSSL write them, and IANA's numbers of what the engine has of it. */

/** A protocol version, the lowest first. The engine speaks the last two. */
export const VERSIONS: Readonly<Record<string, number>> = {
  TLSv1: 0x0301,
  'TLSv1.1': 0x0302,
  'TLSv1.2': 0x0303,
  'TLSv1.3': 0x0304,
};
export const [TLS12, TLS13] = [0x0303, 0x0304];

interface Suite {
  readonly number: number;
  /** OpenSSL's name, and IANA's. */
  readonly names: readonly string[];
  readonly bits: number;
  /** Words of OpenSSL's language of lists that mean this suite among others. */
  readonly words: readonly string[];
}

const WORDS = ['ALL', 'DEFAULT', 'HIGH', 'TLSv1.2', 'ECDHE', 'EECDH', 'kECDHE', 'kEECDH'];
const [AES128, AES256] = [128, 256].map((bits) => [`AES${bits}`, 'AES', 'AESGCM', 'FIPS']);
const [CHACHA, RSA, ECDSA] = [['CHACHA20'], ['aRSA'], ['aECDSA', 'ECDSA']];

/** Those of TLS 1.2, in the order in which the engine would offer them. */
const SUITES: readonly Suite[] = [
  suite(0xc02c, 'ECDHE-ECDSA-AES256-GCM-SHA384', 256, [AES256, ECDSA]),
  suite(0xc02b, 'ECDHE-ECDSA-AES128-GCM-SHA256', 128, [AES128, ECDSA]),
  suite(0xcca9, 'ECDHE-ECDSA-CHACHA20-POLY1305', 256, [CHACHA, ECDSA]),
  suite(0xc030, 'ECDHE-RSA-AES256-GCM-SHA384', 256, [AES256, RSA]),
  suite(0xc02f, 'ECDHE-RSA-AES128-GCM-SHA256', 128, [AES128, RSA]),
  suite(0xcca8, 'ECDHE-RSA-CHACHA20-POLY1305', 256, [CHACHA, RSA]),
];

/** Those of TLS 1.3. They have no other names, and no words. */
const SUITES_13: Readonly<Record<string, number>> = {
  TLS_AES_256_GCM_SHA384: 0x1302,
  TLS_AES_128_GCM_SHA256: 0x1301,
  TLS_CHACHA20_POLY1305_SHA256: 0x1303,
};

/** The suites that the engine has, for people. */
export const SUITE_NAMES = [...Object.keys(SUITES_13), ...SUITES.map(({ names }) => names[0])];

/** The security level of OpenSSL that the engine keeps to, whatever it is asked. */
const SECURITY_LEVEL = 2;

function suite(number: number, name: string, bits: number, words: readonly (readonly string[])[]): Suite {
  const iana = name
    .replace(/^(ECDHE-\w+)-/, '$1-WITH-')
    .replace(/AES(\d+)/, 'AES-$1')
    .replace(/POLY1305$/, 'POLY1305-SHA256');
  return { number, names: [name, `TLS_${iana.replaceAll('-', '_')}`], bits, words: [...WORDS, ...words.flat()] };
}

/** What a list of ciphers comes to, of what the engine has. */
export interface Ciphers {
  readonly tls12: readonly number[];
  readonly tls13: readonly number[];
  /** It wants more security than the engine can promise. */
  readonly isTooStrict: boolean;
}

/**
 * Reads a list in OpenSSL's language (`openssl ciphers`), as Node does: names that begin with `TLS_` are those of TLS 1.3, of which all are offered where
 * there is no such name. A list says what may be offered: what the engine has not is left out.
 */
export function readCiphers(list: string): Ciphers {
  const words = list.split(/[:;, ]+/).filter((word) => word !== '');
  const names13 = words.filter((word) => word.startsWith('TLS_') && !means(word));
  const numbers13 = names13.length === 0 ? Object.values(SUITES_13) : names13.flatMap((name) => SUITES_13[name] ?? []);
  const dead = new Set<Suite>();
  let chosen: Suite[] = [];
  let isTooStrict = false;
  for (const word of words) {
    const [, operation = '', rest = '', level] = /^([!+-]?)([^@]*)(?:@SECLEVEL=(\d))?/.exec(word) ?? [];
    if (Number(level ?? 0) > SECURITY_LEVEL) isTooStrict = true;
    if (word === '@STRENGTH') chosen = chosen.toSorted((one, other) => other.bits - one.bits);
    if (rest === '') continue;
    const meant = SUITES.filter((suite) => rest.split('+').every((part) => means(part, [suite])));
    const others = chosen.filter((suite) => !meant.includes(suite));
    if (operation === '!') for (const suite of meant) dead.add(suite);
    if (operation === '!' || operation === '-') chosen = others;
    else if (operation === '+') chosen = [...others, ...chosen.filter((suite) => meant.includes(suite))];
    else chosen.push(...meant.filter((suite) => !dead.has(suite) && !chosen.includes(suite)));
  }
  return { tls12: chosen.map(({ number }) => number), tls13: [...new Set(numbers13)], isTooStrict };
}

/** Whether a word means one of these suites. */
function means(word: string, suites: readonly Suite[] = SUITES): boolean {
  return suites.some(({ names, words }) => names.includes(word) || words.includes(word));
}

const GROUPS: Readonly<Record<string, number>> = {
  X25519: 0x001d,
  x25519: 0x001d,
  'P-256': 0x0017,
  prime256v1: 0x0017,
  secp256r1: 0x0017,
  'P-384': 0x0018,
  secp384r1: 0x0018,
};

/** A list of groups: those that the engine has, in the order of the list. */
export const readGroups = (list: string): number[] => numbersIn(GROUPS, list);

const HASHES = ['SHA256', 'SHA384', 'SHA512'];
const SIGNATURES: Readonly<Record<string, number>> = Object.fromEntries([
  ...HASHES.flatMap((hash, i) => {
    const small = hash.toLowerCase();
    const [pkcs1, pss] = [0x0401 + 0x0100 * i, 0x0804 + i];
    return [
      [`RSA+${hash}`, pkcs1],
      [`rsa_pkcs1_${small}`, pkcs1],
      [`RSA-PSS+${hash}`, pss],
      [`PSS+${hash}`, pss],
      [`rsa_pss_rsae_${small}`, pss],
    ] as const;
  }),
  ['ECDSA+SHA256', 0x0403],
  ['ecdsa_secp256r1_sha256', 0x0403],
  ['ECDSA+SHA384', 0x0503],
  ['ecdsa_secp384r1_sha384', 0x0503],
  ['ed25519', 0x0807],
]);

/** A list of signature algorithms: those that the engine has, in the order of the list. */
export const readSignatures = (list: string): number[] => numbersIn(SIGNATURES, list);

/** OpenSSL 3.5 also knows signs before a name that say what is sent at once, and what may be unknown. */
function numbersIn(names: Readonly<Record<string, number>>, list: string): number[] {
  const numbers = list.split(/[:/]/).flatMap((name) => names[name.replace(/^[?*]+/, '')] ?? []);
  return [...new Set(numbers)];
}
