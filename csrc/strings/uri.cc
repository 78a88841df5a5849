#include "strings/uri.h"

#include <vector>

namespace structgen {

namespace {

// The components of a URI without its fragment. An empty authority or query differs from a missing one.
struct UriParts {
  std::string_view scheme, authority, path, query;
  bool has_authority = false, has_query = false;
};

// A colon before the first slash or question mark ends the scheme.
UriParts parse(std::string_view s) {
  UriParts p;
  const std::size_t colon = s.find(':'), slash = s.find_first_of("/?");
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon < slash)) {
    p.scheme = s.substr(0, colon);
    s.remove_prefix(colon + 1);
  }
  if (s.starts_with("//")) {
    s.remove_prefix(2);
    const std::size_t end = std::min(s.find_first_of("/?"), s.size());
    p.authority = s.substr(0, end);
    p.has_authority = true;
    s.remove_prefix(end);
  }
  const std::size_t query = s.find('?');
  p.path = s.substr(0, query);
  if (query != std::string_view::npos) {
    p.query = s.substr(query + 1);
    p.has_query = true;
  }
  return p;
}

// Removes the segments `.` and `..` (RFC 3986, section 5.2.4): "/a/./b/../c" becomes "/a/c".
std::string remove_dots(std::string_view path) {
  std::vector<std::string_view> out;
  const bool absolute = path.starts_with('/');
  bool directory = false;
  std::size_t at = absolute ? 1 : 0;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, end - at);
    directory = segment == "." || segment == "..";
    if (segment == "..") {
      if (!out.empty()) out.pop_back();
    } else if (segment != ".") {
      out.push_back(segment);
    }
    at = end + 1;
  }
  std::string text = absolute ? "/" : "";
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i) text += '/';
    text += out[i];
  }
  if (directory && !text.empty() && text.back() != '/') text += '/';
  return text;
}

}  // namespace

void split_fragment(std::string_view uri, std::string_view& absolute, std::string_view& fragment) {
  const std::size_t hash = uri.find('#');
  absolute = uri.substr(0, hash);
  fragment = hash == std::string_view::npos ? std::string_view{} : uri.substr(hash + 1);
}

// This is section 5.2.2 of RFC 3986. The paths of `urn:` and `tag:` have no levels, so their dots stay.
std::string resolve_uri(std::string_view base, std::string_view reference) {
  std::string_view ref, fragment, base_absolute, unused;
  split_fragment(reference, ref, fragment);
  split_fragment(base, base_absolute, unused);
  const UriParts r = parse(ref), b = parse(base_absolute);
  std::string out;
  const auto finish = [&](const UriParts& from, std::string path, const UriParts& query) {
    if (!from.scheme.empty()) out.append(from.scheme).append(":");
    if (from.has_authority) out.append("//").append(from.authority);
    out += path;
    if (query.has_query) out.append("?").append(query.query);
  };
  if (!r.scheme.empty()) {
    finish(r, r.scheme == "urn" || r.scheme == "tag" ? std::string(r.path) : remove_dots(r.path), r);
  } else if (r.has_authority) {
    UriParts p = r;
    p.scheme = b.scheme;
    finish(p, remove_dots(r.path), r);
  } else if (r.path.empty()) {
    finish(b, std::string(b.path), r.has_query ? r : b);
  } else if (r.path.starts_with('/')) {
    finish(b, remove_dots(r.path), r);
  } else {
    std::string merged;
    // RFC 3986, section 5.2.3: the reference replaces the text behind the last slash of the base.
    if (b.has_authority && b.path.empty())
      merged = "/";
    else if (const std::size_t slash = b.path.rfind('/'); slash != std::string_view::npos)
      merged = b.path.substr(0, slash + 1);
    merged += r.path;
    finish(b, remove_dots(merged), r);
  }
  if (reference.find('#') != std::string_view::npos) out.append("#").append(fragment);
  return out;
}

std::string percent_decode(std::string_view text) {
  std::string out;
  const auto hex = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace structgen
