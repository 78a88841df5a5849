"""Write csrc/regex/unicode_tables.inc: the Unicode data that patterns may name.

In: the `regex` module (categories, scripts, binary properties) and Python's str.casefold/lower (simple
case folding). Out: C++ arrays, all ranges as inclusive pairs. Run: python tools/make_unicode.py
"""

import sys
from pathlib import Path

import regex

OUT = Path(__file__).parent.parent / "csrc" / "regex" / "unicode_tables.inc"
CHARS = [chr(c) for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]

CATEGORIES = {
    "Lu": "Uppercase_Letter", "Ll": "Lowercase_Letter", "Lt": "Titlecase_Letter",
    "Lm": "Modifier_Letter", "Lo": "Other_Letter", "Mn": "Nonspacing_Mark", "Mc": "Spacing_Mark",
    "Me": "Enclosing_Mark", "Nd": "Decimal_Number,digit", "Nl": "Letter_Number", "No": "Other_Number",
    "Pc": "Connector_Punctuation", "Pd": "Dash_Punctuation", "Ps": "Open_Punctuation",
    "Pe": "Close_Punctuation", "Pi": "Initial_Punctuation", "Pf": "Final_Punctuation",
    "Po": "Other_Punctuation", "Sm": "Math_Symbol", "Sc": "Currency_Symbol", "Sk": "Modifier_Symbol",
    "So": "Other_Symbol", "Zs": "Space_Separator", "Zl": "Line_Separator", "Zp": "Paragraph_Separator",
    "Cc": "Control,cntrl", "Cf": "Format", "Co": "Private_Use", "Cn": "Unassigned",
}  # fmt: skip

# ECMA-262 table "Binary Unicode property aliases", less the Changes_When_* family.
BINARY = {
    "Alphabetic": "Alpha", "ASCII_Hex_Digit": "AHex", "Bidi_Control": "Bidi_C",
    "Bidi_Mirrored": "Bidi_M", "Case_Ignorable": "CI", "Cased": "", "Dash": "",
    "Default_Ignorable_Code_Point": "DI", "Deprecated": "Dep", "Diacritic": "Dia", "Emoji": "",
    "Emoji_Component": "EComp", "Emoji_Modifier": "EMod", "Emoji_Modifier_Base": "EBase",
    "Emoji_Presentation": "EPres", "Extended_Pictographic": "ExtPict", "Extender": "Ext",
    "Grapheme_Base": "Gr_Base", "Grapheme_Extend": "Gr_Ext", "Hex_Digit": "Hex",
    "ID_Continue": "IDC", "ID_Start": "IDS", "Ideographic": "Ideo", "Join_Control": "Join_C",
    "Logical_Order_Exception": "LOE", "Lowercase": "Lower", "Math": "",
    "Noncharacter_Code_Point": "NChar", "Pattern_Syntax": "Pat_Syn",
    "Pattern_White_Space": "Pat_WS", "Quotation_Mark": "QMark", "Radical": "",
    "Regional_Indicator": "RI", "Sentence_Terminal": "STerm", "Soft_Dotted": "SD",
    "Terminal_Punctuation": "Term", "Unified_Ideograph": "UIdeo", "Uppercase": "Upper",
    "Variation_Selector": "VS", "White_Space": "space", "XID_Continue": "XIDC", "XID_Start": "XIDS",
}  # fmt: skip

SCRIPTS = """
Adlam Adlm|Ahom|Anatolian_Hieroglyphs Hluw|Arabic Arab|Armenian Armn|Avestan Avst|Balinese Bali
Bamum Bamu|Bassa_Vah Bass|Batak Batk|Bengali Beng|Bhaiksuki Bhks|Bopomofo Bopo|Brahmi Brah
Braille Brai|Buginese Bugi|Buhid Buhd|Canadian_Aboriginal Cans|Carian Cari|Caucasian_Albanian Aghb
Chakma Cakm|Cham|Cherokee Cher|Chorasmian Chrs|Common Zyyy|Coptic Copt Qaac|Cuneiform Xsux
Cypriot Cprt|Cypro_Minoan Cpmn|Cyrillic Cyrl|Deseret Dsrt|Devanagari Deva|Dives_Akuru Diak
Dogra Dogr|Duployan Dupl|Egyptian_Hieroglyphs Egyp|Elbasan Elba|Elymaic Elym|Ethiopic Ethi|Garay Gara
Georgian Geor|Glagolitic Glag|Gothic Goth|Grantha Gran|Greek Grek|Gujarati Gujr|Gunjala_Gondi Gong
Gurmukhi Guru|Gurung_Khema Gukh|Han Hani|Hangul Hang|Hanifi_Rohingya Rohg|Hanunoo Hano|Hatran Hatr
Hebrew Hebr|Hiragana Hira|Imperial_Aramaic Armi|Inherited Zinh Qaai|Inscriptional_Pahlavi Phli
Inscriptional_Parthian Prti|Javanese Java|Kaithi Kthi|Kannada Knda|Katakana Kana|Kawi
Kayah_Li Kali|Kharoshthi Khar|Khitan_Small_Script Kits|Khmer Khmr|Khojki Khoj|Khudawadi Sind
Kirat_Rai Krai|Lao Laoo|Latin Latn|Lepcha Lepc|Limbu Limb|Linear_A Lina|Linear_B Linb|Lisu|Lycian Lyci
Lydian Lydi|Mahajani Mahj|Makasar Maka|Malayalam Mlym|Mandaic Mand|Manichaean Mani|Marchen Marc
Masaram_Gondi Gonm|Medefaidrin Medf|Meetei_Mayek Mtei|Mende_Kikakui Mend|Meroitic_Cursive Merc
Meroitic_Hieroglyphs Mero|Miao Plrd|Modi|Mongolian Mong|Mro Mroo|Multani Mult|Myanmar Mymr
Nabataean Nbat|Nag_Mundari Nagm|Nandinagari Nand|New_Tai_Lue Talu|Newa|Nko Nkoo|Nushu Nshu
Nyiakeng_Puachue_Hmong Hmnp|Ogham Ogam|Ol_Chiki Olck|Ol_Onal Onao|Old_Hungarian Hung|Old_Italic Ital
Old_North_Arabian Narb|Old_Permic Perm|Old_Persian Xpeo|Old_Sogdian Sogo|Old_South_Arabian Sarb
Old_Turkic Orkh|Old_Uyghur Ougr|Oriya Orya|Osage Osge|Osmanya Osma|Pahawh_Hmong Hmng|Palmyrene Palm
Pau_Cin_Hau Pauc|Phags_Pa Phag|Phoenician Phnx|Psalter_Pahlavi Phlp|Rejang Rjng|Runic Runr
Samaritan Samr|Saurashtra Saur|Sharada Shrd|Shavian Shaw|Siddham Sidd|SignWriting Sgnw|Sinhala Sinh
Sogdian Sogd|Sora_Sompeng Sora|Soyombo Soyo|Sundanese Sund|Sunuwar Sunu|Syloti_Nagri Sylo|Syriac Syrc
Tagalog Tglg|Tagbanwa Tagb|Tai_Le Tale|Tai_Tham Lana|Tai_Viet Tavt|Takri Takr|Tamil Taml|Tangsa Tnsa
Tangut Tang|Telugu Telu|Thaana Thaa|Thai|Tibetan Tibt|Tifinagh Tfng|Tirhuta Tirh|Todhri Todr|Toto
Tulu_Tigalari Tutg|Ugaritic Ugar|Vai Vaii|Vithkuqi Vith|Wancho Wcho|Warang_Citi Wara|Yezidi Yezi
Yi Yiii|Zanabazar_Square Zanb
""".replace("\n", "|")


def ranges(test: str) -> list[tuple[int, int]]:
    """Returns the code points that `test` (a one-character pattern) matches."""
    out: list[tuple[int, int]] = []
    for found in regex.finditer(f"(?V1)(?:{test})+", "".join(CHARS)):
        lo, hi = found.start(), found.end() - 1
        # Positions skip the surrogates; a run may cross the gap.
        lo, hi = (x if x < 0xD800 else x + 0x800 for x in (lo, hi))
        out.append((lo, hi))
    return out


def simple_fold(c: str) -> str:
    """CaseFolding.txt, status C or S."""
    folded = c.casefold()
    if len(folded) == 1:
        return folded
    lower = c.lower()
    return lower if len(lower) == 1 else c


def fold_runs() -> list[tuple[int, int, int, int]]:
    """Returns (first, last, stride, delta): first, first+stride, ..., last fold to themselves + delta."""
    runs: list[list[int]] = []
    for c in CHARS:
        code, delta = ord(c), ord(simple_fold(c)) - ord(c)
        if delta == 0:
            continue
        if runs and runs[-1][3] == delta:
            first, last, stride, _ = runs[-1]
            step = code - last
            if step <= 2 and (first == last or step == stride):
                runs[-1][1:3] = [code, step]
                continue
        runs.append([code, code, 1, delta])
    return [tuple(r) for r in runs]


def numbers(values: list[int]) -> str:
    lines, line = [], ""
    for value in values:
        text = f"{value},"
        if len(line) + len(text) > 110:
            lines.append(line)
            line = ""
        line += text
    return "\n".join([*lines, line])


def table(name: str, properties: dict[str, list[tuple[int, int]]]) -> str:
    """Returns a list of {names, begin, end} over one flat array of pairs. `names` are separated by commas."""
    flat: list[int] = []
    rows = []
    for names, found in properties.items():
        rows.append(f'{{"{names}",{len(flat) // 2},{len(flat) // 2 + len(found)}}},')
        flat += [x for pair in found for x in pair]
    return (
        f"constexpr uint32_t k{name}Ranges[] = {{\n{numbers(flat)}\n}};\n"
        f"constexpr UnicodeProperty k{name}[] = {{\n" + "\n".join(rows) + "\n};\n"
    )


def main() -> None:
    scripts, extensions = {}, {}
    for names in filter(None, (s.strip() for s in SCRIPTS.split("|"))):
        long = names.split()[0]
        try:
            plain = ranges(rf"\p{{Script={long}}}")
        except regex.error:
            print(f"skipped script {long}: unknown to regex {regex.__version__}", file=sys.stderr)
            continue
        key = names.replace(" ", ",")
        scripts[key] = plain
        extensions[key] = ranges(rf"[\p{{Script_Extensions={long}}}--\p{{Script={long}}}]")
    categories = {f"{k},{v}": ranges(rf"\p{{gc={k}}}") for k, v in CATEGORIES.items()}
    binary = {}
    for long, short in BINARY.items():
        try:
            binary[",".join(filter(None, (long, short)))] = ranges(rf"\p{{{long}}}")
        except regex.error:
            print(f"skipped property {long}: unknown to regex {regex.__version__}", file=sys.stderr)
    fold = fold_runs()
    text = "// Written by tools/make_unicode.py; do not edit.\n"
    # Unassigned is what the other categories leave.
    text += table("Category", {k: v for k, v in categories.items() if k[:2] != "Cn"})
    text += table("Script", scripts) + table("ScriptExtra", extensions) + table("Binary", binary)
    rows = "\n".join(f"{{{a},{b},{s},{d}}}," for a, b, s, d in fold)
    text += f"constexpr FoldRun kFold[] = {{\n{rows}\n}};\n"
    OUT.write_text(text)
    print(f"{OUT.name}: {len(text)} bytes, {len(fold)} fold runs")


if __name__ == "__main__":
    main()
