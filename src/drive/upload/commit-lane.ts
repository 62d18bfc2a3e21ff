import { ApiError } from '../../api/errors.ts';
import type { FileEntry, Remote } from '../../api/remote.ts';
import { type Clock, elapsedMs } from '../../util/clock.ts';
import { keyOf } from '../../util/path.ts';
import { isApiFailure } from '../errors.ts';
import { type LaneCommit, LaneMember } from './lane-member.ts';

export interface CommitLaneParts {
  /** Guarded against gaps, if there are any. */
  readonly remote: Pick<
    Remote,
    'upload' | 'uploadsAtOnce' | 'stageContents' | 'finishSession' | 'finishSessions'
  >;
  readonly clock: Clock;
}

/** Longer contents are sent by a call of their own, and share only the commit. */
const SHORT_BYTES_MAX = 256 * 1024;

/** Fewer are through as soon by one `upload` after the other as by one call for their bytes and one to commit them. */
const GROUP_FILES_MIN = 3;

/** Of one group, sent together. More would be late on a slow line. */
const GROUP_FILES_MAX = 50;
const GROUP_BYTES_MAX = 2 * 1024 * 1024;

/** Groups on their way at once, when there is more to send than fits into one. */
const GROUPS_MAX = 3;

/** What one commit takes (`finish_batch_v2`). */
const COMMITS_MAX = 1000;

/** Writers whose files were just committed together have sent their next ones by then; on a local network within 5 ms. */
const LINGER_MS = 25;

/**
 * Who has waited so long behind a call that then finds the service away is told the same. A call of its own would take
 * 25 s more, and davfs2 and Cyberduck give up after 30.
 */
const OUTAGE_WAIT_MS = 5_000;

/**
 * The commits of one account. The service refuses a second one while it is at work on the first, so they take
 * turns, and those that gather meanwhile go together (`finish_batch_v2`); where it is found to take several, short
 * files go side by side.
 *
 * How to use it: `commit` whatever is to be stored, in the order in which it was acknowledged and as much at once as
 * there is. The lane sends the bytes of short files, groups them, and keeps the order of the writes to one path; each
 * gets its own outcome, as if it had been committed alone. A file that comes alone is one `upload`, at once; N short
 * ones at once cost about N / 50 calls for their bytes and as many commits.
 */
export class CommitLane {
  /** Contents that wait for their turn, or for company. */
  #short: LaneMember[] = [];
  /** Sessions that wait for a commit. */
  #ready: LaneMember[] = [];
  /** The last write to each path. */
  readonly #paths = new Map<string, Promise<void>>();
  #commits = 0;
  #stagings = 0;
  /** While those are awaited whose files were just committed together: how many, and what to abort when they are here. */
  #company: { readonly count: number; readonly wait: AbortController } | undefined;

  constructor(private readonly parts: CommitLaneParts) {}

  /**
   * Resolves with what the service made of it. Throws `ApiError`, or the signal's reason: then nothing is
   * committed, unless that was under way. Writes to one path are committed in the order of these calls.
   */
  commit(request: LaneCommit, signal?: AbortSignal): Promise<FileEntry> {
    const key = keyOf(request.path);
    const before = this.#paths.get(key);
    const member = new LaneMember(request, this.parts.clock.instant(), signal, () => this.#turn());
    const { ended } = member;
    this.#paths.set(key, ended);
    void ended.then(() => {
      if (this.#paths.get(key) === ended) this.#paths.delete(key);
    });
    const begin = async () => {
      if (before !== undefined) await before;
      this.#enter(member);
      await ended;
    };
    const { inTurn = atOnce } = request;
    inTurn(begin).catch((error: unknown) => member.reject(error));
    return member.outcome;
  }

  #enter(member: LaneMember): void {
    const isBusy = this.#isFull || this.#stagings > 0 || this.#short.length + this.#ready.length > 0;
    if (member.session) this.#ready.push(member);
    else if (isBusy && member.request.sizeBytes > SHORT_BYTES_MAX) void this.#stage([member]);
    else this.#short.push(member);
    this.#turn();
  }

  /** Sets in motion what may be. */
  #turn(): void {
    this.#dropGone();
    while (this.#stagings < GROUPS_MAX && isFull(this.#short)) void this.#stage(this.#takeGroup());
    if (this.#isFull) return;
    if (this.#ready.length > 0) void this.#commitReady();
    while (this.#areSideBySide && !this.#isFull && this.#short.length > 0) void this.#commitAlone();
    if (this.#isFull) return;
    // With a group on its way, the others wait to make one: a call for each of them would only be more calls.
    if (this.#stagings > 0 || this.#short.length === 0) return;
    if (this.#isAwaitingCompany()) return;
    this.#company?.wait.abort();
    this.#company = undefined;
    const group = this.#short.filter(({ mustGoAlone }) => !mustGoAlone);
    if (group.length >= GROUP_FILES_MIN) void this.#stage(this.#takeGroup());
    else void this.#commitAlone();
  }

  /** Whether the service refuses one more commit. */
  get #isFull(): boolean {
    return this.#commits >= this.parts.remote.uploadsAtOnce();
  }

  get #areSideBySide(): boolean {
    return this.parts.remote.uploadsAtOnce() > 1;
  }

  #isAwaitingCompany(): boolean {
    if (!this.#company || this.#short.some(({ mustGoAlone }) => mustGoAlone)) return false;
    return this.#short.length < this.#company.count;
  }

  /** Those that nobody waits for any more and that are not under way. */
  #dropGone(): void {
    for (const member of [...this.#short, ...this.#ready]) if (member.isGone) member.end();
    this.#short = this.#short.filter(({ isGone }) => !isGone);
    this.#ready = this.#ready.filter(({ isGone }) => !isGone);
  }

  #takeGroup(): LaneMember[] {
    const group: LaneMember[] = [];
    let sizeBytes = 0;
    for (const member of this.#short) {
      sizeBytes += member.request.sizeBytes;
      if (group.length === GROUP_FILES_MAX || (group.length > 0 && sizeBytes > GROUP_BYTES_MAX)) break;
      if (!member.mustGoAlone) group.push(member);
    }
    this.#short = this.#short.filter((member) => !group.includes(member));
    return group;
  }

  /** Sends the bytes of a group ahead of the commit. */
  async #stage(group: readonly LaneMember[]): Promise<void> {
    this.#stagings += 1;
    const outcomes = await this.#staged(group);
    this.#stagings -= 1;
    for (const [index, member] of group.entries()) {
      const outcome = outcomes[index];
      if (member.isGone) member.end();
      else if (!outcome || outcome instanceof Error) this.#failed(member, outcome);
      else {
        member.session = outcome;
        this.#ready.push(member);
      }
    }
    this.#turn();
  }

  async #staged(group: readonly LaneMember[]): ReturnType<Remote['stageContents']> {
    const contents = group.map(({ request, bytes = NOTHING }) => ({
      bytes,
      contentHash: request.contentHash,
    }));
    try {
      return await this.parts.remote.stageContents(contents);
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      return group.map(() => failure);
    }
  }

  async #commitAlone(): Promise<void> {
    const [member] = this.#short.splice(0, 1);
    if (!member) return;
    const { bytes = NOTHING, request, signal } = member;
    await this.#alone(member, () => this.parts.remote.upload(request.path, bytes, request.options, signal));
  }

  async #commitReady(): Promise<void> {
    const members = this.#ready.splice(0, COMMITS_MAX);
    const [sole] = members;
    if (sole && members.length === 1) {
      const { signal } = sole;
      return this.#alone(sole, () => this.parts.remote.finishSession(sole.sessionCommit(), signal));
    }
    await this.#together(members);
  }

  /** Commits one file; until that is done the lane is its own. */
  async #alone(member: LaneMember, commit: () => Promise<FileEntry>): Promise<void> {
    this.#commits += 1;
    try {
      member.resolve(await commit());
    } catch (error) {
      this.#failed(member, error);
    }
    this.#commits -= 1;
    this.#turn();
  }

  /**
   * Commits several files in one call. What the service sends away for now is tried again on the side: when the
   * others have their outcomes, the next commit may begin.
   */
  async #together(members: readonly LaneMember[]): Promise<void> {
    this.#commits += 1;
    await new Promise<void>((answered) => {
      const commits = members.map((member) => member.sessionCommit());
      const onOutcome = (index: number, outcome: FileEntry | Error) => {
        const member = members[index];
        if (outcome instanceof Error) this.#failed(member, outcome);
        else member?.resolve(outcome);
        answered();
      };
      const done = this.parts.remote.finishSessions(commits, undefined, onOutcome);
      done
        .catch((error: unknown) => {
          for (const member of members) this.#failed(member, error);
        })
        .finally(answered);
    });
    this.#commits -= 1;
    this.#awaitCompany(members.filter(({ bytes }) => bytes).length + this.#short.length);
    this.#turn();
  }

  /** The writers of a group come back all at once: the next group is worth a short wait. */
  #awaitCompany(count: number): void {
    if (count < GROUP_FILES_MIN) return;
    this.#company?.wait.abort();
    const company = { count, wait: new AbortController() };
    this.#company = company;
    const end = () => {
      if (this.#company !== company) return;
      this.#company = undefined;
      this.#turn();
    };
    this.parts.clock.sleep(LINGER_MS, company.wait.signal).then(end, end);
  }

  #failed(member: LaneMember | undefined, error: unknown): void {
    if (member?.bytes && !member.mustGoAlone && isOfStaging(error)) {
      member.mustGoAlone = true;
      member.session = undefined;
      this.#short.unshift(member);
      return;
    }
    member?.reject(error);
    if (!isOutage(error)) return;
    // One after the other, the last would wait for minutes.
    const { clock } = this.parts;
    const waited = (other: LaneMember) => elapsedMs(clock, other.since) >= OUTAGE_WAIT_MS;
    for (const other of [...this.#short, ...this.#ready]) if (waited(other)) other.reject(error);
    this.#short = this.#short.filter((other) => !waited(other));
    this.#ready = this.#ready.filter((other) => !waited(other));
  }
}

const NOTHING = new Uint8Array();

function atOnce<T>(commit: () => Promise<T>): Promise<T> {
  return commit();
}

function isFull(members: readonly LaneMember[]): boolean {
  const group = members.filter(({ mustGoAlone }) => !mustGoAlone);
  if (group.length >= GROUP_FILES_MAX) return true;
  return (
    group.length > 1 && group.reduce((sum, { request }) => sum + request.sizeBytes, 0) >= GROUP_BYTES_MAX
  );
}

/** A refusal of the way by which the bytes came; a plain `upload` may still store them. */
function isOfStaging(error: unknown): boolean {
  return isApiFailure(error, 'session-gone', 'incorrect-offset', 'bad-request', 'not-allowed', 'foreign');
}

/** The service was not to be had, as long as a call waits for it. */
function isOutage(error: unknown): boolean {
  return error instanceof ApiError && OUTAGES.has(error.failure);
}

const OUTAGES: ReadonlySet<ApiError['failure']> = new Set(['offline', 'unavailable', 'rate-limited']);
