#include <sotto/base/file_signature.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace sotto {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kUnpack = "unpack it first";
constexpr std::string_view kSaveAsCsv = "save it as CSV (UTF-8)";
constexpr std::string_view kWriteAsCsv = "write it as CSV, e.g. with pandas' to_csv";
constexpr std::string_view kFetchAgain = "fetch the file itself";

struct Entry {
  std::string_view magic;
  FileSignature signature;
  std::size_t offset = 0;
  /// Letters that a text may begin with: the file must have control characters too.
  bool letters = false;
};

// What is inside a zip archive tells more than that it is one, so that zip comes last.
constexpr std::array kEntries = {
    Entry{"\x28\xB5\x2F\xFD"sv, {"packed with zstd", "unpack it first (zstd -d)", true}},
    Entry{"\xFD"
          "7zXZ\0"sv,
          {"packed with xz", "unpack it first (unxz)", true}},
    Entry{"1AY&SY"sv, {"packed with bzip2", "unpack it first (bunzip2)", true}, 4},
    Entry{"BZh"sv, {"packed with bzip2", "unpack it first (bunzip2)", true}, 0, true},
    Entry{"\x04\x22\x4D\x18"sv, {"packed with lz4", "unpack it first (lz4 -d)", true}},
    Entry{"\x1F\x9D"sv, {"packed with compress (.Z)", "unpack it first (gunzip)", true}},
    Entry{"7z\xBC\xAF\x27\x1C"sv, {"a 7z archive", kUnpack, true}},
    Entry{"Rar!\x1A\x07"sv, {"a RAR archive", kUnpack, true}},
    Entry{"ustar"sv, {"a tar archive", "unpack it first (tar -xf)", true}, 257},
    Entry{"PAR1"sv, {"a Parquet file", kWriteAsCsv}, 0, true},
    Entry{"ARROW1"sv, {"an Arrow (Feather) file", kWriteAsCsv}, 0, true},
    Entry{"FEA1"sv, {"a Feather file", kWriteAsCsv}, 0, true},
    Entry{"Obj\x01"sv, {"an Avro file", kWriteAsCsv}},
    Entry{"ORC"sv, {"an ORC file", kWriteAsCsv}, 0, true},
    Entry{"\x89HDF\r\n\x1A\n"sv, {"an HDF5 file", kWriteAsCsv}},
    Entry{"CDF\x01"sv, {"a netCDF file", kWriteAsCsv}},
    Entry{"\x93NUMPY"sv, {"a NumPy array (npy)", "write it as text with numpy.savetxt"}},
    Entry{"\x80\x02"sv, {"a Python pickle", kWriteAsCsv}},
    Entry{"\x80\x03"sv, {"a Python pickle", kWriteAsCsv}},
    Entry{"\x80\x04\x95"sv, {"a Python pickle", kWriteAsCsv}},
    Entry{"\x80\x05\x95"sv, {"a Python pickle", kWriteAsCsv}},
    Entry{"SQLite format 3\0"sv, {"an SQLite database", "export its table as CSV"}},
    Entry{"MATLAB 5.0 MAT-file"sv, {"a MATLAB file", "write it as CSV with writematrix"}},
    Entry{"RDX2\n"sv, {"an R workspace", "write it as CSV with write.csv"}},
    Entry{"RDX3\n"sv, {"an R workspace", "write it as CSV with write.csv"}},
    Entry{"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, {"an old Excel workbook (xls)", kSaveAsCsv}},
    Entry{"%PDF-"sv, {"a PDF document", kSaveAsCsv}},
    Entry{"\x89PNG\r\n\x1A\n"sv,
          {"a PNG image", "a text is expected; images are read from IDX files alone"}},
    Entry{"\xFF\xD8\xFF"sv,
          {"a JPEG image", "a text is expected; images are read from IDX files alone"}},
    Entry{"\x7F"
          "ELF"sv,
          {"a program", kFetchAgain}},
    Entry{"<!DOCTYPE"sv, {"a web page", kFetchAgain}},
    Entry{"<!doctype"sv, {"a web page", kFetchAgain}},
    Entry{"<html"sv, {"a web page", kFetchAgain}},
    Entry{"<HTML"sv, {"a web page", kFetchAgain}},
    Entry{"version https://git-lfs"sv, {"a pointer of Git LFS", "fetch it with git lfs pull"}},
    Entry{"\0\0\x08\x01"sv, {"an IDX file", "its folder is read by the task mnist:DIR"}},
    Entry{"\0\0\x08\x03"sv, {"an IDX file", "its folder is read by the task mnist:DIR"}},
    Entry{"\0\0\x08\x04"sv, {"an IDX file", "its folder is read by the task mnist:DIR"}},
    Entry{"PK\x03\x04"sv, {"a zip archive", kUnpack, true}},
    Entry{"PK\x05\x06"sv, {"an empty zip archive", kFetchAgain}},
};

struct ZipEntry {
  std::string_view name;  // of a member, within the first kilobyte
  FileSignature signature;
};

constexpr std::array kZipped = {
    ZipEntry{"xl/", {"an Excel workbook (xlsx)", kSaveAsCsv}},
    ZipEntry{"[Content_Types].xml", {"an Office document (xlsx?)", kSaveAsCsv}},
    ZipEntry{"application/vnd.oasis.opendocument", {"an OpenDocument file (ods)", kSaveAsCsv}},
    ZipEntry{".npy", {"a NumPy archive (npz)", "write it as text with numpy.savetxt"}},
    ZipEntry{"data.pkl", {"a model or tensor of PyTorch", kWriteAsCsv}},
};

/// Characters that no text has.
bool has_controls(std::string_view head) {
  return std::any_of(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x09 || (byte > 0x0D && byte < 0x20);
  });
}

}  // namespace

std::optional<FileSignature> find_signature(std::string_view head) {
  const bool controls = has_controls(head);
  const auto* const found = std::find_if(kEntries.begin(), kEntries.end(), [&](const Entry& entry) {
    return head.size() >= entry.offset && (controls || !entry.letters) &&
           head.substr(entry.offset).starts_with(entry.magic);
  });
  if (found == kEntries.end()) {
    return std::nullopt;
  }
  if (found->magic.starts_with("PK")) {
    const auto* const inside = std::find_if(
        kZipped.begin(), kZipped.end(),
        [head](const ZipEntry& entry) { return head.find(entry.name) != std::string_view::npos; });
    return inside == kZipped.end() ? found->signature : inside->signature;
  }
  return found->signature;
}

}  // namespace sotto
