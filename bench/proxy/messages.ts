/** What passes between the bench and its proxy process. */

export interface ProxySettings {
  readonly upstream: { readonly host: string; readonly port: number };
  /** Milliseconds for which requests are held back: the round trip takes that much longer. */
  readonly delayMs: number;
  /** Clients reach the proxy by TLS, and the server is reached without: what passes can be read. */
  readonly certificate?: Certificate;
}

/** PEM texts. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

/** What went through the proxy since it was asked to begin anew. */
export interface Traffic {
  /** Times that a connection on which nothing was unanswered sent something. */
  readonly roundTrips: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Commands that clients sent, by name. */
  readonly commands: Readonly<Record<string, number>>;
  /** Of each connection that waits for an answer now, the commands since it last had one, in alphabetical order. */
  readonly unanswered: readonly string[];
}

export type ToProxy = { readonly ask: 'traffic'; readonly anew: boolean };

export type FromProxy = { readonly port: number } | { readonly traffic: Traffic } | { readonly fault: string };
