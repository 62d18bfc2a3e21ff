import { momentNow } from '../../util/clock.ts';
import type {
  UploadSessionFinishArg,
  UploadSessionFinishBatchArg,
  UploadSessionFinishBatchResult,
  UploadSessionFinishBatchResultEntry,
} from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { ApiError } from '../errors.ts';
import { CallFailure, failureOfEntry } from '../failure.ts';
import type { HttpAnswer } from '../http.ts';
import type { FileEntry } from '../remote.ts';
import { type CallRequest, COMMIT_TIMEOUT, parsed, rpcRequest } from '../request.ts';
import { type Trouble, unansweredQuestion } from '../retry.ts';
import { type Commit, checkContent, finishArg, resolveCommit } from './commit.ts';
import type { SessionCommit } from './upload-calls.ts';

const ROUTE = 'files/upload_session/finish_batch_v2';

/** Maximum number of entries in one call. */
const ENTRIES_MAX = 1000;

/**
 * `finish_batch_v2`: entries that the service refused for now are sent again without the finished ones. The outcome of
 * an entry never depends on another entry.
 */
export async function finishBatch(
  client: Client,
  commits: readonly SessionCommit[],
  signal: AbortSignal | undefined,
  onOutcome: OnOutcome = () => {},
): Promise<readonly (FileEntry | Error)[]> {
  if (commits.length === 0) return [];
  if (commits.length > ENTRIES_MAX)
    throw new ApiError('bad-request', `${ROUTE}: ${commits.length} commits, and at most ${ENTRIES_MAX} fit`);
  client.meter.batched(commits.length);
  return new Batch(client, commits, signal, onOutcome).run();
}

type OnOutcome = (index: number, outcome: FileEntry | Error) => void;

interface Entry {
  readonly index: number;
  readonly commit: Commit;
  readonly arg: UploadSessionFinishArg;
  outcome?: FileEntry | Error;
  /** The service's last answer for this entry, which may only mean that an earlier try has committed it. */
  refusal?: CallFailure;
}

/** A batch of commits, over as many calls as it takes to give each entry its outcome. */
class Batch {
  readonly #entries: readonly Entry[];
  #pending: readonly Entry[];
  #request: CallRequest;
  #outcomeUnknown = false;
  readonly #trouble: Trouble = {};

  constructor(
    private readonly client: Client,
    commits: readonly SessionCommit[],
    private readonly signal: AbortSignal | undefined,
    private readonly onOutcome: OnOutcome,
  ) {
    const started = momentNow(client.clock);
    this.#entries = commits.map((commit, index) => ({
      index,
      commit: { ...commit, started },
      arg: finishArg(client, commit),
    }));
    this.#pending = this.#entries;
    this.#request = requestOf(this.#pending);
  }

  async run(): Promise<readonly (FileEntry | Error)[]> {
    await this.#send();
    await Promise.all(this.#entries.map((entry) => this.#settle(entry)));
    return this.#entries.map(({ outcome }) => outcome ?? new Error('an entry without an outcome'));
  }

  /** Returns when every entry has an outcome or a refusal. Entries without either get the error of the call. */
  async #send(): Promise<void> {
    const request = () => this.#request;
    try {
      await this.client.caller.call({
        // Read for each try: only entries that are still open are sent again.
        get request() {
          return request();
        },
        lane: 'commit',
        signal: this.signal,
        trouble: this.#trouble,
        read: (answer) => this.#read(answer),
        resolve: ({ outcomeUnknown }) => this.#lookForOpen(outcomeUnknown),
      });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      for (const entry of this.#pending) this.#end(entry, error);
    }
  }

  /** Ends the entries whose outcome is final. Throws the `CallFailure` of one that is not. */
  #read(answer: HttpAnswer): void {
    const results = parsed<UploadSessionFinishBatchResult>(answer.text).entries;
    if (results.length !== this.#pending.length) throw new TypeError('not one outcome for each entry');
    const outcomes = results.map((result) => this.#outcomeOf(result, answer));
    const open: Entry[] = [];
    let again: CallFailure | undefined;
    for (const [index, entry] of this.#pending.entries()) {
      const outcome = outcomes[index];
      if (!(outcome instanceof CallFailure)) this.#end(entry, checked(outcome, entry.commit));
      else if (outcome.reason === 'refused') entry.refusal = outcome;
      else {
        open.push(entry);
        // A failure with an unknown outcome goes first, because the open entries are looked up after it.
        again = again?.outcomeUnknown ? again : outcome;
      }
    }
    this.#keep(open);
    if (again) throw again;
  }

  #outcomeOf(result: UploadSessionFinishBatchResultEntry, answer: HttpAnswer): FileEntry | CallFailure {
    return result['.tag'] === 'success'
      ? this.client.root.file(result)
      : failureOfEntry(result.failure, ROUTE, answer);
  }

  /** Ends the open entries that were committed by a call whose answer was lost. */
  async #lookForOpen(outcomeUnknown: boolean): Promise<{ readonly result: undefined } | undefined> {
    this.#outcomeUnknown ||= outcomeUnknown;
    if (!outcomeUnknown) return undefined;
    const lost = new CallFailure('lost', new ApiError('offline', `${ROUTE}: the answer was lost`));
    await Promise.all(
      this.#pending.map(async (entry) => {
        const found = await this.#find(entry, lost);
        if (found) this.#end(entry, found);
      }),
    );
    this.#keep(this.#pending.filter(({ outcome }) => !outcome));
    return this.#pending.length === 0 ? { result: undefined } : undefined;
  }

  /** Ends a refused entry. The refusal may be caused by our own commit, which used up the session or made the file. */
  async #settle(entry: Entry): Promise<void> {
    const { refusal: failure } = entry;
    if (!failure) return;
    const outcomeUnknown = this.#outcomeUnknown;
    let found: FileEntry | ApiError | undefined;
    try {
      found = await this.#find(entry, failure);
    } catch (cause) {
      found = unansweredQuestion({ failure, outcomeUnknown }, cause);
    }
    this.#end(entry, found ?? failure.error.withOutcome(outcomeUnknown));
  }

  #end(entry: Entry, outcome: FileEntry | Error): void {
    entry.outcome = outcome;
    this.onOutcome(entry.index, outcome);
  }

  #find({ commit }: Entry, failure: CallFailure): Promise<FileEntry | undefined> {
    const about = { failure, outcomeUnknown: this.#outcomeUnknown, trouble: this.#trouble };
    return resolveCommit(this.client, commit, about, this.signal);
  }

  /** Keeps `open` as the entries that are still to be sent. */
  #keep(open: readonly Entry[]): void {
    if (open.length === this.#pending.length) return;
    this.#pending = open;
    this.#request = requestOf(open);
  }
}

function requestOf(entries: readonly Entry[]): CallRequest {
  const arg: UploadSessionFinishBatchArg = { entries: entries.map(({ arg }) => arg) };
  const texts = arg.entries.map((entry) => JSON.stringify(entry));
  return { ...rpcRequest(ROUTE, arg), answerTimeout: COMMIT_TIMEOUT, entries: texts };
}

function checked(file: FileEntry | undefined, commit: Commit): FileEntry | Error {
  if (!file) return new ApiError('unavailable', `${ROUTE}: no outcome`);
  try {
    return checkContent(file, commit, ROUTE);
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}
