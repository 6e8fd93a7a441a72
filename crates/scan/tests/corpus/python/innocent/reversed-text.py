# a text backwards
def palindrome(text):
    return text == text[::-1] and "so"[::-1] == "os"
