/** Events of the connection that every queue object forwards. */
export interface IoredisListener {
  /** An open connection was lost, without `close()`. */
  'ioredis:close': () => void;
}
