/** The words about locks, pending writes and conflicts. */
export const ENGLISH_TROUBLE = {
  lockedBy: 'Locked by {0}',
  lockedItem: '“{0}” is locked',
  lockedMeans: 'A program has it open. Until it closes it, others cannot change it.',
  notLocked: 'It is no longer locked.',
  lockedAbove: 'with the folder {0}',
  lockedUntil: 'until {0}',
  someone: 'someone',
  endLock: 'End the lock',
  endLockQuestion: 'End your lock?',
  endLockWarning:
    'The program that has it open may then be unable to save, or others may change it meanwhile. End the lock only if that program is gone.',
  keptWrites: 'Waiting and refused',
  nothingKept: 'Everything has been stored.',
  waitingWrites: 'Waiting to be sent: {0}',
  waitingMeans:
    'The drive has these files safely on its own disk, and sends them to the storage service by itself.',
  lostWrites: 'Refused: {0}',
  lostMeans: 'The storage service will not take these files. They are kept until you save or discard them.',
  waitsToBeSent: 'Waits to be sent to the storage service',
  waitsBecause: 'Waits to be sent: {0}',
  unknownName: 'File of unknown name',
  discardWrite: 'Discard',
  discardQuestion: 'Discard “{0}”?',
  discardWarning: 'Its content is deleted for good, and the storage service never gets it.',
  conflict: 'Conflicted copy',
  conflictMeans:
    'A conflicted copy is the second version of a file that was changed in two places at the same time. Compare it with the file, and delete one of them.',
  findConflicts: 'Find conflicted copies',
};

export const GERMAN_TROUBLE: Readonly<Record<keyof typeof ENGLISH_TROUBLE, string>> = {
  lockedBy: 'Gesperrt von {0}',
  lockedItem: '„{0}“ ist gesperrt',
  lockedMeans: 'Ein Programm hat es geöffnet. Bis es geschlossen wird, kann niemand sonst es ändern.',
  notLocked: 'Die Sperre ist aufgehoben.',
  lockedAbove: 'mit dem Ordner {0}',
  lockedUntil: 'bis {0}',
  someone: 'jemandem',
  endLock: 'Sperre aufheben',
  endLockQuestion: 'Die eigene Sperre aufheben?',
  endLockWarning:
    'Das Programm, das es geöffnet hat, kann dann vielleicht nicht mehr speichern, und andere können es inzwischen ändern. Die Sperre nur aufheben, wenn dieses Programm nicht mehr läuft.',
  keptWrites: 'Wartend und abgelehnt',
  nothingKept: 'Alles ist gespeichert.',
  waitingWrites: 'Noch zu senden: {0}',
  waitingMeans:
    'Diese Dateien liegen sicher auf der Platte des Laufwerks und werden von selbst an den Speicherdienst gesendet.',
  lostWrites: 'Abgelehnt: {0}',
  lostMeans:
    'Der Speicherdienst nimmt diese Dateien nicht an. Sie bleiben hier, bis sie gesichert oder verworfen werden.',
  waitsToBeSent: 'Noch nicht an den Speicherdienst gesendet',
  waitsBecause: 'Noch nicht gesendet: {0}',
  unknownName: 'Datei ohne bekannten Namen',
  discardWrite: 'Verwerfen',
  discardQuestion: '„{0}“ verwerfen?',
  discardWarning: 'Der Inhalt wird endgültig gelöscht und kommt nie beim Speicherdienst an.',
  conflict: 'Konfliktkopie',
  conflictMeans:
    'Eine Konfliktkopie ist die zweite Fassung einer Datei, die an zwei Orten gleichzeitig geändert wurde. Bitte vergleichen und eine von beiden löschen.',
  findConflicts: 'Konfliktkopien suchen',
};
