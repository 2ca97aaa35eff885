package keyexpr

// rule is a kind of problem: its stable code and its message.
type rule struct {
	code   string
	format string
}

// The text as a whole.
var (
	emptyExpression = rule{"empty-expression", "an expression is missing here"}
	tooLong         = rule{"expression-too-long", "the expression has %d bytes, more than %d; move it into a function of the package"}
	tooDeep         = rule{"expression-too-deep", "brackets are nested more than %d deep; move a part into a function of the package"}
	tooLarge        = rule{"expression-too-large", "the expression has more than %d operands and operators; move a part into a function of the package"}
	tooLargeWritten = rule{"expression-too-large", "%s would have more than %d operands and operators if the names in it were written out; move a part into a function of the package"}
	invalidText     = rule{"invalid-text", "the expression is not valid UTF-8 here"}
	syntaxError     = rule{"expression-syntax", "%s"}
	shadowed        = rule{"shadowed-predeclared", "the package declares its own %s, which key code needs as Go predeclares it; rename it"}
)

// Names.
var (
	unknownName     = rule{"unknown-name", "nothing is called %s here"}
	unknownParam    = rule{"unknown-parameter", "the method has no parameter %s"}
	springName      = rule{"unknown-parameter", "the method has no parameter %s; write %s"}
	elementMember   = rule{"unknown-name", "nothing is called %s here; write .%s for that of the element"}
	unknownMember   = rule{"unknown-member", "%s has no field or method %s"}
	unknownRequest  = rule{"unknown-member", "request has no %s"}
	unknownRoot     = rule{"unknown-member", "#root has no %s"}
	refusedRoot     = rule{"unknown-member", "#root has no %s; %s"}
	ambiguousMember = rule{"ambiguous-member", "%s is embedded more than once in %s; name the embedded field too"}
	ambiguousName   = rule{"ambiguous-name", "%[1]s is both the caller's and a parameter; write request.%[1]s for the caller's or #%[1]s for the parameter"}
	ambiguousResult = rule{"ambiguous-name", "%[1]s is both the method's result and a parameter or the receiver; write #%[1]s for the result or %[2]s for the other"}
	ambiguousGlobal = rule{"ambiguous-name", "%[1]s is both the caller's and declared in the package; write request.%[1]s for the caller's or (%[2]s) for the other"}
	ambiguousAll    = rule{"ambiguous-name", "global is both the name for all calls together and a parameter; write #global for the parameter, or leave the key out to count all calls together"}
	ambiguousMethod = rule{"ambiguous-name", "request.%[1]s is both the caller's and the parameter's; write #request.%[1]s for the parameter's, or %[1]s for the caller's"}
	ambiguousLookup = rule{"ambiguous-name", "request.%[1]s is both the caller's and the parameter's; write #request.%[1]s for the parameter's, or give the parameter another name for the caller's"}
	isImport        = rule{"not-in-scope", "%s is an imported package; only functions of the annotated package can be called: write one that calls it"}
	importedName    = rule{"not-in-scope", "%s is of another package and cannot be named here; declare %s of this package: %s"}
	goFunction      = rule{"not-in-scope", "%s is a package, and only functions of the annotated package can be called: %s"}
	limitWord       = rule{"unknown-name", "%s stands alone as max, not within an expression; %s"}
	isType          = rule{"not-a-value", "%s is a type, not a value"}
	isFunction      = rule{"not-a-value", "%s is a function; call it: %[1]s(...)"}
	isMethod        = rule{"not-a-value", "%s is a method; call it: %[2]s.%[1]s()"}
	bareRequest     = rule{"not-a-value", "request is no value; write request.ip or request.user"}
	bareLookup      = rule{"not-a-value", "request.%[1]s is asked by name; write request.%[1]s(\"name\")"}
	dynamicName     = rule{"dynamic-name", "%s takes a literal name"}
	badName         = rule{"invalid-name", "%s cannot be the name of a %s"}
	noResults       = rule{"unknown-name", "%s is not known before the call; only count and cost-after know results"}
	noResult        = rule{"unknown-name", "the method has no %s: %s"}
	nameTaken       = rule{"name-taken", "%s already means something here; let must give a new name"}
	unusedName      = rule{"unused-name", "nothing uses %s"}
	bareRoot        = rule{"not-a-value", "#root is no value; write #root.methodName, #root.args[0] or #root.target"}
	rootArgs        = rule{"not-a-value", "#root.args is no value; write #root.args[0] for the first parameter"}
	rootLength      = rule{"constant-expression", "the number of parameters is the same for every call; leave it out"}
	noArgument      = rule{"unknown-parameter", "the method has %d parameters, so there is none at %d; the first is at 0"}
	noArguments     = rule{"unknown-parameter", "the method has no parameters"}
	noTarget        = rule{"unknown-member", "there is no receiver here"}
	hiddenEmbedded  = rule{"hidden-embedded", "%s is promoted through %s, a pointer that other packages cannot check for nil; use a method or a function of the package"}
	typeParamField  = rule{"type-parameter-field", "a field of type parameter %s cannot be selected; use a method of its constraint"}
	hiddenType      = rule{"hidden-type", "%s needs a variable of %s; use a function of the package%s"}
	invalidType     = rule{"invalid-type", "the type of %s is not known, because the package does not compile there"}
)

// Dimensions.
var (
	noRequest     = rule{"no-request", "%s is not known: no parameter of the method is a context.Context, an *http.Request, or has a method Context() context.Context"}
	noRequestFrom = rule{"no-request", "%s is not known: %s; add a context.Context"}
	ipText        = rule{"address-in-expression", "the caller's address is an element of its own, not text; write a tuple: ip, ..."}
	ipCompared    = rule{"address-in-expression", "the caller's address is not compared; exempt addresses by cidr in a policy file, or call a function of the package that asks ratelimit.RequestFrom(ctx)"}
	globalAlone   = rule{"global-not-alone", "global means all calls together and cannot be combined; leave it out"}
	nestedTuple   = rule{"nested-tuple", "a tuple cannot stand inside a tuple; write its elements one after the other"}
	tupleInside   = rule{"not-supported", "an array stands for a tuple and must be the whole key, or stand behind in: x in [a, b]"}
	notIndexed    = rule{"not-supported", "not negates what is behind it; write #not%s for the parameter"}
	letInList     = rule{"not-supported", "let does not reach beyond a comma; write let x = ...; [a, b]"}
	onePrefix     = rule{"prefix-length", "addresses are grouped by two lengths, for IPv4 and IPv6; write %s/%s/64"}
	onlyAddresses = rule{"prefix-length", "%[1]s is no address, and only addresses are grouped; write %[1]s"}
	prefixLength  = rule{"prefix-length", "%s is not a length from 1 to %d, for %s"}
	untrusted     = rule{"key-trust", "any client can choose a fresh %s, and with it a fresh counter; add what it cannot choose, such as ip or user, or check it in a function of the package"}
	constantKey   = rule{"constant-key", "the key is the same for every call; %swrite key=global"}
	constantCost  = rule{"constant-expression", "%s"}
	constantWhen  = rule{"constant-expression", "the condition is the same for every call; leave the option out, or write mode=off to switch the limit off"}
	repeatedElem  = rule{"repeated-element", "%s is in the key already; leave it out here"}
	emptyKey      = rule{"empty-key", "the element is empty text, so every call would be without a key; leave it out"}
	joinedKey     = rule{"joined-key", "different values can give the same joined text; write a tuple: %s"}
	absentDefault = rule{"useless-default", "%s is absent wherever %s is, so it is never used%s"}
	uselessChoice = rule{"useless-default", "%s always has a value, so what stands behind %s is never used%s"}
)

// Types.
var (
	notKey          = rule{"not-a-key", "%s is %s, not text, an integer or a boolean; %s"}
	mixedKey        = rule{"not-a-key", "type parameter %s can be more than one of text, signed integer, unsigned integer and boolean; use a function of the package that returns text"}
	notInteger      = rule{"not-an-integer", "%s is %s, not an integer%s"}
	fraction        = rule{"not-an-integer", "%s is a constant with a fraction, which Go does not make an integer of; write int(floor(%s))"}
	notNumber       = rule{"not-a-number", "%s is %s, not a number%s"}
	notNumbers      = rule{"not-a-number", "the elements of %s are %s, not numbers; say what to add: sum(%s, %s)"}
	notList         = rule{"not-a-list", "%s is %s; %s takes a slice or an array"}
	notCollection   = rule{"not-a-list", "%s is %s; in takes a slice, an array, a map or [a, b]"}
	uncomparedElems = rule{"not-a-list", "%s is %s, whose elements are not compared; use a function of the package"}
	textInText      = rule{"not-a-list", "%[1]s is text; write %[1]s contains %[2]s"}
	listContains    = rule{"not-text", "%s is %s, not text; write %s"}
	notText         = rule{"not-text", "%s is %s, not text%s"}
	notCondition    = rule{"not-a-condition", "%s is %s, not a boolean; write a comparison"}
	orChooses       = rule{"not-a-condition", "%s joins conditions, and neither %s nor %s is one; for the first that is there write %s"}
	notBefore       = rule{"not-a-condition", "%s stands for %s alone, which is %s; write %s"}
	comparedFirst   = rule{"mismatched-types", "%s is %s and %s is %s; comparisons go from left to right: put parentheses around each"}
	mismatched      = rule{"mismatched-types", "%s is %s and %s is %s; convert one: %s"}
	respelled       = rule{"mismatched-types", "%s is %s and %s is %s; write %s"}
	incompatible    = rule{"mismatched-types", "%s is %s and %s is %s"}
	pointedTo       = rule{"mismatched-types", "%s is %s and %s is %s; write a function of the package that returns what %s points to"}
	notComparable   = rule{"not-comparable", "%s is %s; only text, numbers and booleans are compared, and anything with nil"}
	comparedError   = rule{"not-comparable", "%s is error, and errors are not compared; write %s, a function of the package that returns errors.Is(%s)"}
	notOrdered      = rule{"not-ordered", "%s is %s; only text and numbers are ordered"}
	neverNil        = rule{"never-nil", "%s is %s, which always has a value; the comparison with nil says nothing"}
	nilValue        = rule{"nil-value", "nil stands only beside ==, != and ??"}
	notConvert      = rule{"not-convertible", "%s is %s, which %s does not convert%s"}
	notIndexable    = rule{"not-indexable", "%s is %s; only slices, arrays and maps with text or integer keys have an index"}
	memberIndex     = rule{"not-indexable", "%s is %s, which has no index; write %s"}
	negativeIndex   = rule{"index-out-of-range", "an index counts from 0 and never from the end"}
	indexRange      = rule{"index-out-of-range", "index %s is not below the length of the array, %d"}
	overflow        = rule{"constant-overflow", "%s does not fit into %s"}
	longLiteral     = rule{"constant-overflow", "%s does not fit into int64, which numbers are written in; declare a constant of the package with this value"}
	leadingZeros    = rule{"expression-syntax", "%s has leading zeros, which say octal in Go and nothing here; write %s"}
	longText        = rule{"constant-overflow", "the text has more than %d bytes; declare a constant of the package for it"}
	zeroDivision    = rule{"division-by-zero", "the divisor is zero"}
	notJoined       = rule{"not-a-list", "%s is %s; join takes a slice of text%s"}
	wholeNumber     = rule{"not-a-float", "%s is %s, which has no fraction; %s takes a float"}
	noLength        = rule{"no-length", "%s is %s; len takes text, a slice, an array or a map"}
	complexValue    = rule{"not-supported", "complex numbers are not supported; use a function of the package"}
	negativeZero    = rule{"negative-zero", "Go's constants have no negative zero; write 0.0"}
	badPattern      = rule{"invalid-pattern", "the regular expression does not parse: %s: %s"}
	dynamicPattern  = rule{"dynamic-pattern", "the regular expression must be a literal, so that it is compiled once; use a function of the package for another"}
	unanchored      = rule{"unanchored-pattern", "the regular expression may match a part of the text, unlike in SpEL; write ^ and $ at its ends, or .* where anything may stand"}
)

// Calls.
var (
	unknownFunction = rule{"unknown-name", "the package has no function %s"}
	notCallable     = rule{"not-callable", "%s is not a function or method of the package"}
	elsewhereCalled = rule{"unknown-name", "there is no function %s here; write %s"}
	fieldCall       = rule{"not-callable", "%s is a field, not a method; %s"}
	genericCall     = rule{"generic-call", "%s has type parameters; write a function without any that calls it"}
	resultCount     = rule{"result-count", "%s has %d results; write a function of the package with exactly one"}
	argumentCount   = rule{"argument-count", "%s takes %s, not %d"}
	argumentType    = rule{"argument-type", "%s is %s; %s takes %s there"}
	typeConversion  = rule{"not-callable", "%s is a type; of conversions there are string(x), float(x) and those to integers, such as int64(x)"}
)

// What expr or SpEL has and this language has not.
var (
	notSupported    = rule{"not-supported", "%s is not supported; %s"}
	repeatedOperand = rule{"repeated-operand", "a part of %s stands there twice; leave one out"}
	repeatedInList  = rule{"repeated-element", "%s is in the list already; leave it out here"}
	alwaysHolds     = rule{"constant-expression", "%s always holds: a value differs from one of two; write and"}
	neverHolds      = rule{"constant-expression", "%s never holds: a value is not two at once; write or"}
	eitherHolds     = rule{"constant-expression", "%s always holds: it has a condition and its opposite; leave them out"}
	bothHold        = rule{"constant-expression", "%s never holds: it has a condition and its opposite; leave one out"}
	itselfAlways    = rule{"constant-expression", "%s always holds: a value is compared with itself"}
	itselfNever     = rule{"constant-expression", "%s never holds: a value is compared with itself"}
	noneLeft        = rule{"constant-expression", "%s never holds: no value is within all its bounds; correct one, or write or"}
	noneLeftOut     = rule{"constant-expression", "%s always holds: every value is within one of its bounds; correct one, or write and"}
	nilCovered      = rule{"constant-expression", "%s always holds: one part does where a value is nil, another where it is not; write and"}
	beyondBounds    = rule{"constant-expression", "%s %s: %s is %s; correct the bound"}
	holdsWhereAny   = rule{"constant-expression", "%s holds wherever %s has a value, which is %s; correct the bound, or compare with nil"}
	emptyPart       = rule{"constant-expression", "%s %s: empty text is in every text; write another%s"}
	neverEmptyText  = rule{"constant-expression", "%s %s holds: %s is never empty text; leave it out"}
	absentNotEmpty  = rule{"constant-expression", "%s %s holds: %s is absent where there is none, and never empty text; write %s"}
	emptyList       = rule{"constant-expression", "%s never holds: the list has no elements; write some between the brackets"}
	emptyInList     = rule{"constant-expression", "%s is never empty text; %s"}
	emptyNotAbsent  = rule{"empty-not-absent", "%s does not look for an absent value, which differs from empty text; write %s for both"}
	absentChosen    = rule{"empty-not-absent", "%s %s where %s is absent, so that %s is chosen there and is absent too; write %s"}
	neverBehind     = rule{"constant-expression", "%s never holds where %s %s: it asks for a part of what is nil there; %s"}
	absentArm       = rule{"constant-expression", "%s is absent where %s %s, the only place where it is chosen; swap the alternatives"}
	constantElem    = rule{"constant-expression", "%s is the same for every call that has a key, as without a value there is no %s either; leave it out"}
	constantBody    = rule{"constant-expression", "%s is the same for every element; ask about the element, which is #"}
	constantPart    = rule{"constant-expression", "%s is the same for every call; leave it out"}
	chained         = rule{"not-supported", "comparisons cannot be chained; write a < b and b < c"}
	mixedDefault    = rule{"expression-syntax", "?? beside another operator needs parentheses: %s"}
	elvisLast       = rule{"expression-syntax", "?: takes all that is behind it as the default; write %s"}
	beanRef         = rule{"spel-syntax", "there are no beans; call a function of the package: name(x)"}
	typeRef         = rule{"spel-syntax", "%s is not supported; call a function of the package: name(x)"}
	typeCall        = rule{"spel-syntax", "%s is not supported; write %s"}
	javaName        = rule{"spel-syntax", "there is no %s here; write %s"}
	newObject       = rule{"spel-syntax", "nothing is made with new here; call a function of the package: name(x)"}
	instanceOf      = rule{"spel-syntax", "types are not asked for here; call a function of the package that tells: name(x)"}
	template        = rule{"spel-syntax", "an expression stands alone, without #{ and }; write %s"}
	placeholder     = rule{"spel-syntax", "${...} is not filled in here; write the name of a constant or variable of the package"}
	braces          = rule{"spel-syntax", "a list stands in brackets; write %s"}
	selection       = rule{"spel-syntax", "%s is not supported; write %s"}
	rangeOperator   = rule{"not-supported", ".. is not supported; write %s"}
	wordOperator    = rule{"spel-syntax", "%s is not an operator here; write %s"}
	betweenOperands = rule{"expression-syntax", "%s is no function but stands between its operands; write %s"}
	doubledQuote    = rule{"spel-syntax", "two texts follow each other; a quote inside of text is written \\' or the text in the other quotes, either with back quotes around the whole value: %s"}
	nullWord        = rule{"spel-syntax", "null is not known here; write nil"}
	assignment      = rule{"expression-syntax", "= does not compare; write =="}
	letForm         = rule{"expression-syntax", "let is written let a = x; b, and several follow each other: let a = x; let b = y; [a, b]"}
	roundList       = rule{"expression-syntax", "a list stands in brackets; write %s"}
	loneHash        = rule{"expression-syntax", "# stands before the name of a parameter, and alone for an element inside any(...), map(...) and their like"}
)
