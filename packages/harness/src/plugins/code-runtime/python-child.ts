/**
 * What a program's process begins with, in Python. It keeps no secret from the program and is no boundary: the host
 * believes nothing that comes from here.
 */
export const pythonChild = String.raw`
import ast, asyncio, json, os, sys, traceback

os.environ.clear()
sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


class Lossy(Exception):
    pass


def scalar(value, path):
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if type(value) is str:
        if any("\ud800" <= c <= "\udfff" for c in value):
            raise Lossy(path() + " has half a character")
        return json.dumps(value)
    if type(value) is int:
        if abs(value) > 9007199254740991:
            raise Lossy(path() + " is a whole number above 2**53 - 1")
        return str(value)
    if type(value) is float:
        if value != value or value in (float("inf"), float("-inf")) or str(value) == "-0.0":
            raise Lossy(path() + " is " + str(value))
        return repr(value)
    raise Lossy(path() + " is of type " + type(value).__name__)


# Neither the stack of Python nor that of json bounds the depth.
def encode(root, name):
    text, levels, opened = [], [], set()

    def path():
        at = name
        for level in levels[:8]:
            at += "[%s]" % level["key"] if level["list"] else "." + str(level["key"])
        return at

    def put(value):
        is_list = type(value) in (list, tuple)
        if not is_list and type(value) is not dict:
            text.append(scalar(value, path))
            return
        if id(value) in opened:
            raise Lossy(path() + " contains itself")
        opened.add(id(value))
        items = iter(enumerate(value)) if is_list else iter(list(value.items()))
        levels.append({"items": items, "list": is_list, "id": id(value), "key": "", "first": True})
        text.append("[" if is_list else "{")

    put(root)
    while levels:
        level = levels[-1]
        try:
            key, value = next(level["items"])
        except StopIteration:
            text.append("]" if level["list"] else "}")
            opened.discard(level["id"])
            levels.pop()
            continue
        if not level["first"]:
            text.append(",")
        level["first"] = False
        if not level["list"] and type(key) is not str:
            levels.pop()
            raise Lossy(path() + " has a key of type " + type(key).__name__)
        level["key"] = key
        if not level["list"]:
            text.append(scalar(key, path) + ":")
        put(value)
    return "".join(text)


class Call(asyncio.Future):
    seen = False

    def __await__(self):
        self.seen = True
        return super().__await__()

    __iter__ = __await__

    def add_done_callback(self, *args, **options):
        self.seen = True
        return super().add_done_callback(*args, **options)

    def result(self):
        self.seen = True
        return super().result()

    def exception(self):
        self.seen = True
        return super().exception()


class Child:
    def __init__(self, loop):
        self.loop = loop
        self.buffered = b""
        self.calls = {}
        self.errors = {}
        self.namespaces = []
        self.mark = ""
        self.main = None

    def send(self, text):
        sys.stdout.flush()
        data = (self.mark + text + "\n").encode()
        while data:
            data = data[os.write(1, data):]

    def read(self):
        chunk = os.read(0, 65536)
        if not chunk:
            os._exit(1)
        *lines, self.buffered = (self.buffered + chunk).split(b"\n")
        for line in lines:
            self.receive(line)

    def receive(self, line):
        try:
            frame = json.loads(line)
        except RecursionError:
            # The number of the call stands at the beginning.
            frame = {"type": "reply", "ok": False, "message": "the answer is nested too deeply for Python"}
            frame["id"] = int(line.split(b'"id":', 1)[1].split(b",", 1)[0])
        if frame["type"] == "boot":
            self.mark = frame["mark"]
            self.namespaces = frame["namespaces"]
            self.limit()
            self.send('{"type":"boot-ack"}')
        elif frame["type"] == "run":
            self.main = self.loop.create_task(self.run(frame["source"]))
        elif frame["type"] == "reply":
            self.reply(frame)

    def limit(self):
        try:
            import resource
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        except Exception:
            pass

    def reply(self, frame):
        call, make = self.calls[frame["id"]]
        if call.done():
            return
        if frame["ok"]:
            call.set_result(frame["value"])
        else:
            call.set_exception(make(frame["message"]))
            # The host tells of failures that nobody looked at.
            call._Future__log_traceback = False

    def bind(self):
        scope = {"__name__": "__main__", "__builtins__": __builtins__}
        for namespace in self.namespaces:
            make = Exception
            shape = namespace.get("errorClass")
            if shape is not None:
                make = self.error_class(shape["name"], shape["memberNameProperty"])
                scope[shape["name"]] = make
            scope[namespace["global"]] = self.namespace(namespace, make)
        return scope

    def error_class(self, name, member):
        def init(self, message="", of=None):
            Exception.__init__(self, message)
            setattr(self, member, of)

        return type(name, (Exception,), {"__init__": init})

    def namespace(self, shape, make):
        functions = {}
        for name in shape["functions"]:
            functions[name] = self.function(shape["global"], name, make)

        class Namespace:
            def __getattribute__(self, name):
                try:
                    return functions[name]
                except KeyError:
                    raise AttributeError("there is no %s.%s" % (shape["global"], name)) from None

            def __getitem__(self, name):
                return functions[name]

            def __dir__(self):
                return list(functions)

        return Namespace()

    def function(self, space, name, make):
        def call(*args, **named):
            if len(args) > 1 or (args and named):
                raise TypeError(name + " takes named arguments, or one dictionary")
            given = args[0] if args else named
            text = encode({} if given is None else given, "arguments")
            future = Call(loop=self.loop)
            number = len(self.calls) + 1
            build = (lambda message: make(message, name)) if make is not Exception else make
            self.calls[number] = (future, build)
            head = '{"type":"call","id":%d,"global":%s,"name":%s' % (number, json.dumps(space), json.dumps(name))
            self.send(head + ',"args":' + text + "}")
            return future

        return call

    async def run(self, source):
        try:
            module = ast.parse(source, "program.py")
            main = ast.parse("async def __dsh_main__(): pass")
            main.body[0].body = module.body or main.body[0].body
            scope = self.bind()
            exec(compile(main, "program.py", "exec"), scope)
            value = await scope["__dsh_main__"]()
        except Exception as error:
            self.fail("exception", self.describe(error))
            return
        if value is None:
            self.end("")
            return
        try:
            self.end(',"value":' + encode(value, "value"))
        except Lossy as error:
            self.fail("invalid-output", str(error))

    def describe(self, error):
        try:
            text = "".join(traceback.format_exception_only(type(error), error)).strip()
            places = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == "program.py"]
            return text + "".join("\n    at %s (program.py:%d)" % (f.name, f.lineno) for f in places[-5:])
        except Exception:
            return "<unprintable thrown value>"

    def fail(self, kind, message):
        self.end(',"error":' + json.dumps({"kind": kind, "message": message}))

    def end(self, fields):
        unread = [str(n) for n, (call, _) in self.calls.items() if call.done() and not call.seen]
        sys.stderr.flush()
        self.send('{"type":"done","unread":[%s]%s}' % (",".join(unread), fields))
        os._exit(0)


def start():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    child = Child(loop)
    loop.add_reader(0, child.read)
    try:
        loop.run_forever()
    except SystemExit as end:
        sys.stdout.flush()
        os._exit(end.code if type(end.code) is int else 1)


start()
`
