/** Names that BullMQ 6.7 exports at run time and this package does not. */
import { isQueueModule, type Use } from './uses.js';
import { placesOf, type FileUses, type Finding } from './finding.js';

const INNER_PARTS =
  'AsyncFifoQueue LockManager Child ChildPool ChildProcessor ChildCommand ParentCommand asyncSend childSend errorToJSON ' +
  'trace withDetachedContext increaseMaxListeners decreaseMaxListeners tryCatch errorObject randomUUID DELAY_TIME_1 ' +
  'DELAY_TIME_5 array2obj invertObject isEmpty objectToFlatArray parseObjectValues removeUndefinedFields ' +
  'lengthInUtf8Bytes toString getParentKey QUEUE_EVENT_SUFFIX raw2NextJobData optsDecodeMap optsEncodeMap';
const BACKENDS =
  'setDefaultBackendFactory getDefaultBackendFactory withBackend createRedisBackend ' +
  'QueueKeys ClientType createIORedisClient createNodeRedisClient createBunRedisClient createValkeyGlideClient ' +
  'isIRedisClient isRedisInstance isRedisCluster isRedisVersionLowerThan clientCommandMessageReg ' +
  'forwardConnectionError isNotConnectionError createPostgresBackend PostgresQueueBackend PostgresConnection isPgPool ' +
  'quoteSchemaName runMigrations assertSchemaCompatibility assertPostgresVersion SchemaMigrationRequiredError ' +
  'SchemaVersionMismatchError UnsupportedPostgresVersionError BULLMQ_MAJOR_VERSION DEFAULT_SCHEMA ' +
  'LATEST_SCHEMA_VERSION MIGRATION_ADVISORY_LOCK_KEY MINIMUM_POSTGRES_VERSION RECOMMENDED_POSTGRES_VERSION';
const TYPES_ALONE = 'RedisQueueBackend';
const RELAYS =
  'Relay RelayError RelayErrorCode checkRelayResult RELAY_LAYOUT_VERSION RELAY_MINIMUM_REDIS_VERSION RedisRelayBackend ' +
  'createRedisRelayBackend PostgresRelayBackend createPostgresRelayBackend';
const LEGACY =
  'hasLegacyRepeatableKeyShape isLegacyRepeatableJobKey getLegacyRepeatableJobError LEGACY_REPEATABLE_JOBS_MIGRATION_URL';

const WHY: readonly (readonly [string, string])[] = [
  [INNER_PARTS, "It is an inner part of BullMQ's that happens to be exported: use Node's, or your own."],
  [BACKENDS, "It is a part of BullMQ's datastores: the engine here cannot be exchanged."],
  [TYPES_ALONE, 'Its type is there, the class is not: the engine here cannot be exchanged.'],
  [RELAYS, "BullMQ's experimental relays are not here."],
  [LEGACY, 'Repeatable jobs of BullMQ 5 never exist here.'],
];

/** By name why it is not there. */
export const NOT_EXPORTED: ReadonlyMap<string, string> = new Map(
  WHY.flatMap(([names, why]) => names.split(' ').map((name) => [name, why] as const)),
);

/** What can be imported. */
const PACKAGES = ['bullmq', '@taskforcesh/bullmq-pro', 'chasquimq', 'chasquimq/v5'];

/** Imports that find nothing. */
export function missingExportsIn(files: readonly FileUses[]): Finding[] {
  const isMissing = ({ kind, name }: Use): boolean => kind === 'name' && NOT_EXPORTED.has(name);
  const names = new Set(files.flatMap(({ uses }) => uses.filter(isMissing).map(({ name }) => name)));
  const missing = [...names].sort().map((name) => ({
    kind: 'export' as const,
    id: `export-${name}`,
    impact: 'breaking' as const,
    title: `\`${name}\` is not exported`,
    text: NOT_EXPORTED.get(name) ?? '',
    places: placesOf(files, (use) => isMissing(use) && use.name === name),
  }));
  const isDeep = ({ kind, name }: Use): boolean => kind === 'import' && isQueueModule(name) && !PACKAGES.includes(name);
  const deep = placesOf(files, isDeep);
  if (deep.length === 0) return missing;
  const title = "files of BullMQ's own are imported";
  const text = 'Only the package itself can be imported: its files have other names here.';
  return [...missing, { kind: 'export', id: 'deep-import', impact: 'breaking', title, text, places: deep }];
}
