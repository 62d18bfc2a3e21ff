import { failureText } from './folder.ts';
import { API } from './gateway.ts';
import { t } from './messages.ts';
import { CSRF_HEADER, csrfHeader, ensureSession } from './session.ts';

/**
 * Has the browser save items of `folder`, and of folders in it, as one archive. It sends a form into a hidden frame: an
 * address would be too short for 10,000 names, and a script would have to keep the whole archive in memory. Calls
 * `refused` with the reason when the gateway does not begin the download.
 */
export async function downloadZip(
  folder: string,
  paths: readonly string[],
  refused: (reason: string) => void,
): Promise<void> {
  try {
    await ensureSession();
  } catch (error) {
    return refused(failureText(error));
  }
  const token = await csrfHeader('POST');
  const frame = document.createElement('iframe');
  frame.name = `zip-${Math.random()}`;
  frame.hidden = true;
  document.body.append(frame);
  // A download leaves the frame empty. Only a refusal is loaded into it.
  frame.onload = () => {
    const reason = frame.contentDocument;
    if (reason?.URL === 'about:blank') return;
    refused(reason?.body.textContent?.trim() || t('offline'));
    frame.remove();
  };
  const below = folder === '/' ? 1 : folder.length + 1;
  const form = document.createElement('form');
  form.method = 'post';
  // A form has no header for the token.
  form.action = `${API}zip?${new URLSearchParams({ csrf: token[CSRF_HEADER] ?? '' })}`;
  form.target = frame.name;
  form.hidden = true;
  form.append(field('folder', folder));
  form.append(field('names', JSON.stringify(paths.map((path) => path.slice(below)))));
  document.body.append(form);
  form.submit();
  form.remove();
}

function field(name: string, value: string): HTMLInputElement {
  const input = document.createElement('input');
  input.type = 'hidden';
  input.name = name;
  input.value = value;
  return input;
}
