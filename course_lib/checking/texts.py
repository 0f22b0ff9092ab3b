"""What the command says in its own words, in the reader's language."""

TEXTS = {
    "unnamed": {
        "en": "name the functions as FILE.py:FUNCTION",
        "ru": "назовите функции в виде ФАЙЛ.py:ФУНКЦИЯ",
    },
    "no_contract": {
        "en": "there is no contract {name!r}; there are: {known}",
        "ru": "контракта «{name}» нет; есть: {known}",
    },
    "nothing": {
        "en": "name a contract and the functions: attention path/to/file.py:my_attention "
        "(--list shows the contracts, --help the options)",
        "ru": "назовите контракт и функции: attention path/to/file.py:my_attention "
        "(--list покажет контракты, --help — параметры)",
    },
    "no_candidates": {
        "en": "no function to check: add {form}",
        "ru": "нечего проверять: добавьте {form}",
    },
    "unknown_option": {
        "en": "unknown option: {options}",
        "ru": "неизвестный параметр: {options}",
    },
    "bad_number": {
        "en": "{option} must be a number greater than 0, got {value!r}",
        "ru": "{option}: нужно число больше 0, а получено «{value}»",
    },
    "bad_whole": {
        "en": "{option} must be a whole number of at least 1, got {value!r}",
        "ru": "{option}: нужно целое число не меньше 1, а получено «{value}»",
    },
    "setting_needed": {
        "en": "the contract {contract!r} needs {option}",
        "ru": "контракту «{contract}» нужен параметр {option}",
    },
    "setting_unknown": {
        "en": "the contract {contract!r} has no {option}",
        "ru": "у контракта «{contract}» нет параметра {option}",
    },
    "count": {
        "en": "the contract {contract!r} takes {form}",
        "ru": "контракт «{contract}» принимает {form}",
    },
    "no_file": {
        "en": "cannot read {file}: {message}",
        "ru": "не удаётся прочитать {file}: {message}",
    },
    "file_word": {"en": "FILE", "ru": "ФАЙЛ"},
    "FileNotFoundError": {"en": "no such file", "ru": "такого файла нет"},
    "notebook": {
        "en": "it is a notebook; save it as a .py file first",
        "ru": "это блокнот; сначала сохраните его как файл .py",
    },
    "IsADirectoryError": {"en": "it is a folder", "ru": "это папка"},
    "PermissionError": {"en": "no permission", "ru": "нет прав на чтение"},
    "encoding": {
        "en": "neither UTF-8 nor a declared encoding",
        "ru": "это не UTF-8, и кодировка не указана",
    },
    "no_function": {
        "en": "{file} defines no {name}; it defines: {known}",
        "ru": "в файле {file} нет {name}; в нём есть: {known}",
    },
    "nothing_defined": {"en": "nothing", "ru": "ничего"},
    "not_callable": {
        "en": "{name} in {file} is of type {kind}, which cannot be called",
        "ru": "{name} в файле {file} имеет тип {kind}, его нельзя вызвать",
    },
    "import_raised": {
        "en": "importing {file} raised {error}{message}{place}",
        "ru": "при импорте {file} возникла ошибка {error}{message}{place}",
    },
    "call_raised": {
        "en": "a call of the function ended the check with {error}{message}{place}",
        "ru": "вызов функции прервал проверку: {error}{message}{place}",
    },
    "contract_raised": {
        "en": "the contract itself could not go on: {error}{message}",
        "ru": "сбой в самом контракте: {error}{message}",
    },
    "at_line": {"en": " (line {line})", "ru": " (строка {line})"},
    "out_of_time": {
        "en": "it ran longer than the time limit of {limit:g} s (--timeout)",
        "ru": "превышен предел времени: {limit:g} с (--timeout)",
    },
    "out_of_memory": {
        "en": "it took more than the memory limit of {limit} MiB beyond torch itself (--memory)",
        "ru": "превышен предел памяти: {limit} МиБ сверх самого torch (--memory)",
    },
    "crowd": {
        "en": "it started more than {limit} processes",
        "ru": "запущено больше {limit} процессов",
    },
    "no_start": {
        "en": "the checking process was not ready after {limit:g} s: this machine is too busy",
        "ru": "проверяющий процесс не запустился за {limit:g} с: машина слишком загружена",
    },
    "signal": {
        "en": "the process crashed: {name}",
        "ru": "процесс аварийно завершился: {name}",
    },
    "no_verdict": {
        "en": "the process left with exit code {code} before the contract came to a verdict",
        "ru": "процесс завершился с кодом {code} раньше, чем контракт вынес вердикт",
    },
    "guard_ended": {
        "en": "the process that watches over the check was ended from outside: {message}",
        "ru": "процесс, который следит за проверкой, был завершён извне: {message}",
    },
    "engine": {
        "en": "the check gave no verdict: {message}",
        "ru": "проверка не вынесла вердикта: {message}",
    },
    "stopped": {"en": "stopped", "ru": "остановлено"},
    "not_runnable": {
        "en": "! {contract}: not runnable: {reason}",
        "ru": "! {contract}: проверить не удалось: {reason}",
    },
    "printed": {
        "en": "  the candidate printed ({size} bytes):",
        "ru": "  напечатано во время проверки (байт: {size}):",
    },
    "omitted": {"en": "… {size} bytes left out …", "ru": "… пропущено байт: {size} …"},
    "summary": {
        "en": "accepted {accepted}, violation {violation}, not attempted {not_attempted}, "
        "not runnable {not_runnable}",
        "ru": "принято {accepted}, нарушений {violation}, решения нет {not_attempted}, "
        "проверить не удалось {not_runnable}",
    },
}
LANGUAGES = tuple(TEXTS["stopped"])


def says(language: str, key: str, **values: object) -> str:
    """Fill in one of the command's own sentences."""
    texts = TEXTS[key]
    return texts.get(language, texts[LANGUAGES[0]]).format(**values)
